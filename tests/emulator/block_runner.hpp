// Runs the threads of a launch: clusters of blocks one after another, or all blocks where they wait
// for each other; the threads of a cluster in turns that change where they wait for each other.
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
  bool cooperative;  // all blocks are there at once
  std::vector<void*> parameters;
  unsigned cluster = 1;                   // blocks, along x
  ClusterState* cluster_state = nullptr;  // of the image; null: none, from an older shim
  TensorState* tensor_state = nullptr;    // the same
};

// Empty, or what went wrong. One launch at a time.
std::string run_launch(const Launch& launch);

}  // namespace emulated
