// Block-scaled quantisation and dequantisation (MXFP8, MXFP4, NVFP4, grouped integers).
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// Memory layout of the scale matrix. f8_128x4: padded to a multiple of 128 rows and 4 columns and
// stored tile by tile, as tensor cores read it: element (r, c) of a tile is at offset
// 16 (r % 32) + 4 (r / 32) + c.
enum class ScaleLayout : std::uint8_t { linear, f8_128x4 };

struct BlockScaleAttributes {
  // Block extents along the last axes: {32}, {1, 32}, {16}, {128, 128}. A block shares one scale.
  Dims block_size = {32};
  ScaleLayout scale_layout = ScaleLayout::linear;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("block_size", self.block_size);
    visit("scale_layout", self.scale_layout);
  }
};

// scale = amax of the block / largest finite value of y's type, rounded up to scale's type;
// y = x / scale, rounded to nearest even. `axis` is the axis of a one-dimensional block.
struct BlockScaleQuantize : BlockScaleAttributes {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y, scale);
  std::int64_t axis = -1;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    BlockScaleAttributes::attributes(self, visit);
    visit("axis", self.axis);
  }
};
// y = (x - zero_point) * scale, negated if negative_scale. zero_point has the shape of scale and
// any numeric dtype; an absent zero_point is 0.
struct BlockScaleDequantize : BlockScaleAttributes {
  ASHLAR_INPUTS(x, scale, ASHLAR_OPTIONAL(zero_point));
  ASHLAR_OUTPUTS(y);
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
