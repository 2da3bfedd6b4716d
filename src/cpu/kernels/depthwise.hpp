// Depthwise and small-group convolution with channels last: vectors along channels, register tiles
// over pixels of one or several lines (rows of an image).
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Source of a line of output pixels. Pixel q reads tap s of term t at column q * scale + shift + s
// * gap of the source line of t (a term is a filter row).
template <class T>
struct DepthwiseSource {
  std::int64_t lines = 0, terms = 0, taps = 0;
  // A result channel sums over the `parts` channels of its group. They are lanes of the vector at
  // the result's own channels (a whole number of groups), unless part_offset != 0: then each part
  // is a copy with one element per result channel, `part_offset` elements after the previous part.
  std::int64_t parts = 1, part_offset = 0;
  std::int64_t channels = 0;          // of the result; at least one vector
  const T* const* sources = nullptr;  // [line][term], at column 0; null: padding
  // term t + shared_step of a line is term t of the next line; 0: not so
  std::int64_t shared_step = 0;
  std::int64_t columns = 0, pixel = 0;  // source columns; elements per column
  std::int64_t scale = 1, shift = 0, gap = 1;
  std::int64_t first = 0, last = 0;  // output pixels
};

// Post-ops of an accumulator:
//   clamp(acc * factor[c] + offset[c] + residual, low, high)
template <class T>
struct DepthwisePostOps {
  const T* factor = nullptr;  // null: none
  const T* offset = nullptr;
  T low = 0, high = 0;
};

// result[line][q][c] = sum over t, p, s of
//     source[line][t][column of q, s][channel p of c's group] * weight[t][p][s][c]
template <class T>
struct DepthwiseLines {
  DepthwiseSource<T> source;
  const T* weights = nullptr;     // [vector][term][part][tap][lane]
  T* const* results = nullptr;    // [line], at pixel 0
  std::int64_t result_pixel = 0;  // pixel stride in elements
  DepthwisePostOps<T> post_ops;
  // [line], at pixel 0, pixel stride as in the result; or null
  const T* const* residuals = nullptr;
  const T* const* prefetch = nullptr;  // [line]: source lines to prefetch; or null
  std::int64_t prefetch_results = 0;   // offset of the results of a later block to prefetch; or 0
  bool stream = false;                 // non-temporal stores: results are whole aligned vectors
};

// sums[t][p][s][c] += sum over lines and q of
//     source[line][t][column of q, s][channel p of c's group] * gradient[line][q][c]
template <class T>
struct DepthwiseFilterLines {
  DepthwiseSource<T> source;
  const T* const* gradients = nullptr;  // [line], at pixel 0
  std::int64_t gradient_pixel = 0;      // pixel stride in elements
  T* sums = nullptr;                    // [vector][term][part][tap][lane]
};

template <class T>
struct DepthwiseKernel {
  std::int64_t lanes;
  void (*lines)(const DepthwiseLines<T>& lines);
  void (*filter_lines)(const DepthwiseFilterLines<T>& lines);
};

// The best implementation for this CPU.
template <class T>
DepthwiseKernel<T> depthwise_kernel();

// First channel of a vector; the last vector overlaps its neighbour so that it is whole.
inline std::int64_t vector_start(std::int64_t vector, std::int64_t lanes, std::int64_t channels) {
  const std::int64_t start = vector * lanes;
  return start + lanes > channels ? channels - lanes : start;
}

}  // namespace ashlar::cpu
