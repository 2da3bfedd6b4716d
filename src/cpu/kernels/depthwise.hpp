// Convolution of groups of few channels with channels last: vectors run along channels, tiles over
// pixels of a line or of several.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Where a line of pixels finds its source. Pixel q meets tap s of term t at column
// q * scale + shift + s * gap of the source line of t.
template <class T>
struct DepthwiseSource {
  std::int64_t lines = 0, terms = 0, taps = 0;
  // A result channel sums over the `parts` channels of its group. They are looked for in the
  // vector at the result's own channels, a whole number of groups, unless each part has a copy for
  // every result channel, `part_offset` elements behind the one before.
  std::int64_t parts = 1, part_offset = 0;
  std::int64_t channels = 0;          // of the result; fill a vector at least
  const T* const* sources = nullptr;  // [line][term], at column 0; null: in the padding
  std::int64_t shared_step = 0;  // term t + shared_step of a line is term t of the next; 0: not so
  std::int64_t columns = 0, pixel = 0;  // extent, elements from column to column
  std::int64_t scale = 1, shift = 0, gap = 1;
  std::int64_t first = 0, last = 0;  // the pixels to visit
};

// What is done to a sum before it is stored:
//   clamp(sum * factor[c] + offset[c] + residual, low, high)
template <class T>
struct DepthwisePostOps {
  const T* factor = nullptr;  // null: nothing is done
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
  std::int64_t result_pixel = 0;  // elements from pixel to pixel
  DepthwisePostOps<T> post_ops;
  const T* const* residuals = nullptr;  // [line], at pixel 0, pixels as in the result; or null
  const T* const* prefetch = nullptr;   // [line]: source lines soon needed; or null
  std::int64_t prefetch_results = 0;    // elements to results of a later block to ask for; or 0
  bool stream = false;                  // write past the caches: results are whole aligned vectors
};

// sums[t][p][s][c] += sum over lines and q of
//     source[line][t][column of q, s][channel p of c's group] * gradient[line][q][c]
template <class T>
struct DepthwiseFilterLines {
  DepthwiseSource<T> source;
  const T* const* gradients = nullptr;  // [line], at pixel 0
  std::int64_t gradient_pixel = 0;      // elements from pixel to pixel
  T* sums = nullptr;                    // [vector][term][part][tap][lane]
};

template <class T>
struct DepthwiseKernel {
  std::int64_t lanes;
  void (*lines)(const DepthwiseLines<T>& lines);
  void (*filter_lines)(const DepthwiseFilterLines<T>& lines);
};

// The best for this processor.
template <class T>
DepthwiseKernel<T> depthwise_kernel();

// Channels are cut into vectors; the last one overlaps its neighbour so that it is whole too.
inline std::int64_t vector_start(std::int64_t vector, std::int64_t lanes, std::int64_t channels) {
  const std::int64_t start = vector * lanes;
  return start + lanes > channels ? channels - lanes : start;
}

}  // namespace ashlar::cpu
