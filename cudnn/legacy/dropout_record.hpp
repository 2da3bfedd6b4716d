// Draws of a forward pass that a backward pass has to repeat.
#pragma once

#include "legacy/dropout.hpp"

namespace ashlar::cudnn {

// 0 for a descriptor that is null. Dropping everything is drawing with a probability so close to 1
// that no number keeps an element: operations that scale by 1 / (1 - p) need p < 1.
double probability_of(cudnnDropoutDescriptor_t dropout, const char* parameter);

// Puts the state of the generator (kDropoutStatesBytes: seed, offset) into `record`, device memory,
// and moves the generator past `elements` draws.
void record_draws(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout, const char* parameter,
                  std::int64_t elements, void* record);

}  // namespace ashlar::cudnn
