// Windows that slide over padded axes: convolutions and poolings.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>

namespace ashlar::cudnn {

// Whether a cudnnResampleMode_t takes windows; the others interpolate.
inline bool is_pooling(std::int64_t mode) {
  return mode != CUDNN_RESAMPLE_NEAREST && mode != CUDNN_RESAMPLE_BILINEAR;
}

// How often a window fits into an axis; 0 when it never does. Extents and steps are those that
// finalize accepts, so nothing overflows.
inline std::int64_t window_count(std::int64_t padded, std::int64_t window, std::int64_t stride) {
  return padded < window ? 0 : (padded - window) / stride + 1;
}

}  // namespace ashlar::cudnn
