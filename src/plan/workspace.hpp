// Laying out memory that lives during a run: buffers whose lifetimes do not overlap share
// addresses.
#pragma once

#include <cstdint>
#include <vector>

namespace ashlar {

struct Buffer {
  std::int64_t bytes = 0;
  int first_step = 0;       // from this step ...
  int last_step = 0;        // ... through this one
  std::int64_t offset = 0;  // result, a multiple of kWorkspaceAlignment
};

// Sets every offset and returns the total size.
std::int64_t lay_out(std::vector<Buffer>& buffers);

}  // namespace ashlar
