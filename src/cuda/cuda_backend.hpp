// Backend for NVIDIA GPUs.
#pragma once

#include "plan/backend.hpp"

namespace ashlar::cuda {

// `last_resort`: a CPU engine that supports every region.
std::unique_ptr<Backend> make_backend(const Engine& last_resort);

}  // namespace ashlar::cuda
