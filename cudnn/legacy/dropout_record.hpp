// The generator state of a forward pass, saved for the backward pass.
#pragma once

#include "legacy/dropout.hpp"

namespace ashlar::cudnn {

// 0 for a null descriptor. Probability 1 becomes a value so close to 1 that every draw drops its
// element, because operations scale by 1 / (1 - p).
double probability_of(cudnnDropoutDescriptor_t dropout, const char* parameter);

// Copies the generator state (kDropoutStatesBytes: seed, offset) to `record` in device memory and
// advances the generator by `elements` draws.
void record_draws(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout, const char* parameter,
                  std::int64_t elements, void* record);

}  // namespace ashlar::cudnn
