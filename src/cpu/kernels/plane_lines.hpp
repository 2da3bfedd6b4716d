// Convolution of groups of few channels with pixels together (NCHW): vectors run along a line of
// pixels.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Lines of source rows: for pixel q, tap s of a term is at rows[line][term][offsets[s] + q]. Rows
// hold what lies past the last pixel up to a whole tile of them.
template <class T>
struct PlaneSource {
  std::int64_t lines = 0, terms = 0, taps = 0, pixels = 0;
  const T* const* rows = nullptr;         // [line][term]
  const std::int64_t* offsets = nullptr;  // [tap]
};

template <class T>
struct PlaneKernel {
  std::int64_t tile;  // pixels
  // results[line * result_line + q] = sum over t, s of weights[t][s] * source; whole tiles are
  // written.
  void (*lines)(const PlaneSource<T>& source, const T* weights, T* results,
                std::int64_t result_line);
  // sums[t][s] += sum over lines and q of gradients[line * gradient_line + q] * source. Gradients
  // past the last pixel, up to a whole tile, are zero.
  void (*filter_lines)(const PlaneSource<T>& source, const T* gradients, std::int64_t gradient_line,
                       double* sums);
};

// The best for this processor.
template <class T>
PlaneKernel<T> plane_kernel();

}  // namespace ashlar::cpu
