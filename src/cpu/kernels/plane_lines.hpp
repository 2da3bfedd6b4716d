// Depthwise and small-group convolution in NCHW: vectors run along a line (image row) of pixels.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Source rows of a block of lines: pixel q reads tap s of a term at rows[line][term][offsets[s] +
// q]. Rows are readable past the last pixel up to a whole tile.
template <class T>
struct PlaneSource {
  std::int64_t lines = 0, terms = 0, taps = 0, pixels = 0;
  const T* const* rows = nullptr;         // [line][term]
  const std::int64_t* offsets = nullptr;  // [tap]
};

template <class T>
struct PlaneKernel {
  std::int64_t tile;  // pixels
  // results[line * result_line + q] = sum over t, s of weights[t][s] * source; writes whole tiles.
  void (*lines)(const PlaneSource<T>& source, const T* weights, T* results,
                std::int64_t result_line);
  // sums[t][s] += sum over lines and q of gradients[line * gradient_line + q] * source. Gradients
  // are zero past the last pixel up to a whole tile.
  void (*filter_lines)(const PlaneSource<T>& source, const T* gradients, std::int64_t gradient_line,
                       double* sums);
};

// The best implementation for this CPU.
template <class T>
PlaneKernel<T> plane_kernel();

}  // namespace ashlar::cpu
