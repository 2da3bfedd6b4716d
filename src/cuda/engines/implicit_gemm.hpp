// Forward and backward-data convolutions as products of matrices whose rows are pixels: what the
// copy engine gathers for each of them, and where the results go.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// result[pixel][column] = sum over taps and channels of from[pixel + tap][channel] *
// filter[tap][channel][column]. Forward `from` is x and columns are filters; backward `from` is dy,
// channels are those of dy, and columns those of dx.
struct ImplicitGemm {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w; absent ones are of extent 1

  struct Tap {
    Axes offset;          // from where the pixel's window begins, at least 0
    std::int64_t filter;  // its place in a filter, counted along its d, h and w
  };
  // Results of one residue modulo the stride see the same taps (backward; forward has one phase).
  struct Phase {
    Axes first, step, extent;  // pixel i of an axis is the result's pixel first + step * i
    Axes lower;                // where in `from` the window of pixel 0 begins
    Axes upper;                // where that of the last begins, less from's last pixel
    std::vector<Tap> taps;     // along w, h and d; none: zeros
    Axes result;               // pixels that are results, the first ones of `extent`: all of them
    std::int64_t pixels_of_image() const { return extent[0] * extent[1] * extent[2]; }
    std::int64_t planes() const;  // that the taps are in: every one has equally many
  };

  explicit ImplicitGemm(const Region& region);

  bool backward;
  // Windows that touch but do not overlap, of few channels (patches): lines of a window are taken
  // as the channels of a pixel, its lines as a third axis whose taps they are.
  bool patches = false;
  int spatial;  // axes, 1 to 3
  const ConvAttributes* op;
  std::int64_t images, groups;
  std::int64_t depth, columns;  // channels that are summed, channels of the result, of a group
  Axes from_extent, to_extent, window;
  Axes step;                  // between windows of neighbouring pixels, in `from`
  std::vector<Phase> phases;  // most taps first
  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  // The same with longer lines and more of them, whose ends are no results: zeros of the padding
  // between lines, and between planes, serve both. A tap is then a fixed number of pixels of its
  // plane further, tap.offset[2], wherever a window begins. For steps of 1.
  ImplicitGemm with_padded_lines() const;
  // Pixels that a tap of `with_padded_lines` is further at most.
  std::int64_t reach() const;
  // The share of all pixels that windows of the first phase see which lie outside of `from`.
  double outside() const;
  // Windows of one pixel, next to each other, none outside: pixels are rows of a matrix as they
  // lie.
  bool is_pointwise() const;
};

// The image of a product of patches as it sees it: [images, channels, d, h, w]. Nothing where its
// memory does not allow it.
std::optional<View> patches_of(const View& image, const ImplicitGemm& product);

// Why the region is not one of these convolutions; yes: ImplicitGemm can be made of it.
Support is_implicit_gemm(const Region& region);

}  // namespace ashlar::cuda
