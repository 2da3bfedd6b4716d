// The memory order of int8 filters and biases after cudnnReorderFilterAndBias().
//
// A filter of INT8x32 vectors, with output channels o, input channels i and filter taps s:
//   before: [o, i / 32, s, i % 32]
//   after:  [i / 32, s, o / 8, o % 2, i % 32 / 4, o % 8 / 2, i % 4]
// A bias: before [o / 32, o % 32 / 8, o % 8 / 4, o % 4], after with the two middle axes swapped.
// XLA's CudnnInferTransposeFor...Reordering observed this permutation in NVIDIA's function.
#pragma once

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// Whether reordering changes anything: vectors of 32, and a multiple of 32 output channels.
bool is_reorderable(const TensorSpec& filter);

// Adds a reordered filter as an input and returns its logical view [o, i, window...].
Value add_reordered_filter(Graph& graph, std::string name, const TensorSpec& filter);
// Adds a reordered bias of `channels` elements as an input and returns its view [1, channels, 1...]
// with `rank` axes.
Value add_reordered_bias(Graph& graph, std::string name, DType dtype, std::int64_t channels,
                         int rank);

}  // namespace ashlar::cudnn
