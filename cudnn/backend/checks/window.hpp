// Sliding windows over padded axes: convolutions and pooling.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>

namespace ashlar::cudnn {

// Whether a cudnnResampleMode_t pools; the other modes interpolate.
inline bool is_pooling(std::int64_t mode) {
  return mode != CUDNN_RESAMPLE_NEAREST && mode != CUDNN_RESAMPLE_BILINEAR;
}

// The number of window positions along an axis; 0 when the window does not fit. Finalize has
// bounded the arguments, so nothing overflows.
inline std::int64_t window_count(std::int64_t padded, std::int64_t window, std::int64_t stride) {
  return padded < window ? 0 : (padded - window) / stride + 1;
}

}  // namespace ashlar::cudnn
