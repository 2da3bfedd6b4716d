// Workspace layout: buffers with disjoint lifetimes share addresses.
#pragma once

#include <cstdint>
#include <vector>

namespace ashlar {

struct Buffer {
  std::int64_t bytes = 0;
  int first_step = 0;       // live from this step
  int last_step = 0;        // through this step
  std::int64_t offset = 0;  // result: a multiple of kWorkspaceAlignment
};

// Sets the offset of every buffer and returns the total size in bytes.
std::int64_t lay_out(std::vector<Buffer>& buffers);

}  // namespace ashlar
