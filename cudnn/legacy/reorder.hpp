// The order of 8-bit filters and biases that cudnnReorderFilterAndBias makes of them, and back.
//
// A filter of INT8x32 vectors, o its output channels, i its input channels, s its window:
//   before: [o, i / 32, s, i % 32]
//   after:  [i / 32, s, o / 8, o % 2, i % 32 / 4, o % 8 / 2, i % 4]
// A bias: before [o / 32, o % 32 / 8, o % 8 / 4, o % 4], after the two middle axes are exchanged.
// That is the permutation which XLA's CudnnInferTransposeFor...Reordering observed of NVIDIA's
// function.
#pragma once

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// Whether the order differs at all: vectors of 32, and as many output channels times anything.
bool is_reorderable(const TensorSpec& filter);

// A filter in memory as it is after, as the logical [o, i, window...].
Value add_reordered_filter(Graph& graph, std::string name, const TensorSpec& filter);
// A bias of `channels` elements in memory as it is after, as [1, channels, 1...] of `rank` axes.
Value add_reordered_bias(Graph& graph, std::string name, DType dtype, std::int64_t channels,
                         int rank);

}  // namespace ashlar::cudnn
