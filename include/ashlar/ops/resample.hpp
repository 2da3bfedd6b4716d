// Pooling and interpolation.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>
#include <optional>

namespace ashlar {

enum class ResampleMode : std::uint8_t {
  nearest,
  bilinear,
  avgpool_include_padding,
  avgpool_exclude_padding,
  maxpool
};
enum class PaddingMode : std::uint8_t { zero, neg_inf, edge };

// Pooling uses window, stride and padding; nearest and bilinear use `size` (the spatial extents of
// the output) and `align_corners`.
struct ResampleAttributes {
  ResampleMode mode = ResampleMode::maxpool;
  Dims window = {};
  Dims stride = {};  // empty: the window
  Dims padding = {};
  std::optional<Dims> post_padding = {};
  PaddingMode padding_mode = PaddingMode::neg_inf;  // value of padding for maxpool; avgpool: 0
  Dims size = {};
  bool align_corners = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("window", self.window);
    visit("stride", self.stride);
    visit("padding", self.padding);
    visit("post_padding", self.post_padding);
    visit("padding_mode", self.padding_mode);
    visit("size", self.size);
    visit("align_corners", self.align_corners);
  }
};
struct ResampleForward : ResampleAttributes {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(
      y, ASHLAR_OPTIONAL(index));  // index: row-major position of the maximum within its window
};
// maxpool requires index or x; the other modes need only the extents of dx.
struct ResampleBackward : ResampleAttributes {
  ASHLAR_INPUTS(dy, ASHLAR_OPTIONAL(x, index));
  ASHLAR_OUTPUTS(dx);
};

}  // namespace ashlar
