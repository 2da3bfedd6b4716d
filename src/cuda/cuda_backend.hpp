// NVIDIA GPUs as places where plans run.
#pragma once

#include "plan/backend.hpp"

namespace ashlar::cuda {

// `last_resort` is an engine of the processor that takes every region.
std::unique_ptr<Backend> make_backend(const Engine& last_resort);

}  // namespace ashlar::cuda
