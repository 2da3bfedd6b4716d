// Block-scaled low precision.
#pragma once

#include <ashlar/dims.hpp>
#include <cstdint>

namespace ashlar {

// How a matrix of scales lies in memory. f8_128x4: padded to a multiple of 128 rows and 4 columns
// and stored tile by tile, as tensor cores read it: element (r, c) of a tile stands at
// 16 (r % 32) + 4 (r / 32) + c.
enum class ScaleLayout : std::uint8_t { linear, f8_128x4 };

struct BlockScaleAttributes {
  // Elements that share a scale, along each of the last axes: {32}, {1, 32}, {16}, {128, 128}.
  Dims block_size = {32};
  ScaleLayout scale_layout = ScaleLayout::linear;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("block_size", self.block_size);
    visit("scale_layout", self.scale_layout);
  }
};

// scale = amax of the block / largest value of y's type, rounded up to scale's type;
// y = x / scale, rounded to nearest even. `axis` is the one a one-dimensional block lies along.
struct BlockScaleQuantize : BlockScaleAttributes {
  enum In { x };
  enum Out { y, scale };
  std::int64_t axis = -1;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    BlockScaleAttributes::attributes(self, visit);
    visit("axis", self.axis);
  }
};
// y = (x - zero_point) * scale, or the negative of that with negative_scale. Blocks share a zero
// point as they share a scale, of the same shape and of any type of numbers; without one it is 0.
struct BlockScaleDequantize : BlockScaleAttributes {
  enum In { x, scale, zero_point };
  enum Out { y };
  std::int64_t axis = -1;
  bool negative_scale = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    BlockScaleAttributes::attributes(self, visit);
    visit("axis", self.axis);
    visit("negative_scale", self.negative_scale);
  }
};

}  // namespace ashlar
