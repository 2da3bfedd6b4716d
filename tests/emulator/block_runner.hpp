// Runs a launch: clusters one after another, or all CTAs concurrently for cooperative launches. The
// threads of a cluster are fibers that switch where they block.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shim/interface.hpp"

namespace emulated {

struct Launch {
  const Image* image;
  const Kernel* kernel;
  std::string name;
  Triple grid, block;
  unsigned shared_bytes;
  bool cooperative;  // cooperative launch: all CTAs are resident
  std::vector<void*> parameters;
  unsigned cluster = 1;                   // cluster size along x
  ClusterState* cluster_state = nullptr;  // of the image; null: compiled with an older shim
  TensorState* tensor_state = nullptr;    // the same
};

// Empty, or an error message. Launches are serialised.
std::string run_launch(const Launch& launch);

}  // namespace emulated
