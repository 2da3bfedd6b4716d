// Forward and backward-data convolutions as implicit GEMM whose rows are pixels: filter taps,
// im2col bounding boxes, and the positions of results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// result[pixel][column] = sum over taps and channels of from[pixel + tap][channel] *
// filter[tap][channel][column]. Forward: `from` is x and columns are filters. Backward-data: `from`
// is dy, channels are those of dy, and columns those of dx.
struct ImplicitGemm {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w; absent ones are of extent 1

  struct Tap {
    Axes offset;          // from the begin of the pixel's window, at least 0
    std::int64_t filter;  // its index in a filter, row-major over d, h, w
  };
  // Output pixels of one residue modulo the stride have the same taps (backward; forward has one
  // phase).
  struct Phase {
    Axes first, step, extent;  // pixel i of an axis is the result's pixel first + step * i
    Axes lower;                // where in `from` the window of pixel 0 begins
    Axes upper;                // where that of the last pixel begins, minus from's last pixel
    std::vector<Tap> taps;     // along w, h and d; none: the result is zero
    Axes result;  // pixels that are results, the first ones of `extent`: by default all
    std::int64_t pixels_of_image() const { return extent[0] * extent[1] * extent[2]; }
    std::int64_t planes() const;  // of its taps, all with the same number of taps
  };

  explicit ImplicitGemm(const Region& region);

  bool backward;
  // Non-overlapping windows of few channels (patches): a line of a window becomes the channels of a
  // pixel, its lines become a third axis of taps.
  bool patches = false;
  int spatial;  // axes, 1 to 3
  const ConvAttributes* op;
  std::int64_t images, groups;
  std::int64_t depth, columns;  // K and N per group: input channels, output channels
  Axes from_extent, to_extent, window;
  Axes step;                  // between windows of adjacent pixels, in `from`
  std::vector<Phase> phases;  // most taps first
  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  // The same with padded lines and planes, whose ends are no results: the zeros between lines, and
  // between planes, serve both neighbours. A tap is then a fixed row offset within its plane,
  // tap.offset[2], wherever a window begins. For steps of 1.
  ImplicitGemm with_padded_lines() const;
  // Maximum row offset of a tap of `with_padded_lines`.
  std::int64_t reach() const;
  // Share of the pixels under the windows of the first phase that lie outside of `from`.
  double outside() const;
  // 1 x 1 windows with stride 1 and no padding: pixels are the rows of a matrix in place.
  bool is_pointwise() const;
};

// The image of a patch convolution as [images, channels, d, h, w]. Nothing where its strides do not
// allow it.
std::optional<View> patches_of(const View& image, const ImplicitGemm& product);

// Why the region is no such convolution; yes: ImplicitGemm can be constructed from it.
Support is_implicit_gemm(const Region& region);

}  // namespace ashlar::cuda
