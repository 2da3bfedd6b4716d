// Spatial transformer: affine grid generator and grid sampler.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// grid[n, i...] = theta[n] (coordinates of i in [-1, 1], 1), x first. theta [N, d, d + 1],
// grid [N, size..., d]. align_corners: -1 and 1 are the centres of the corner elements; otherwise
// their outer edges.
struct GridAttributes {
  Dims size = {};
  bool align_corners = true;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("size", self.size);
    visit("align_corners", self.align_corners);
  }
};
struct GridGeneratorForward : GridAttributes {
  ASHLAR_INPUTS(theta);
  ASHLAR_OUTPUTS(grid);
};
struct GridGeneratorBackward : GridAttributes {
  ASHLAR_INPUTS(dgrid);
  ASHLAR_OUTPUTS(dtheta);
};

enum class GridSampleMode : std::uint8_t { bilinear, nearest };
enum class GridPadding : std::uint8_t { zeros, border, reflection };

// y[n, c, o...] = x[n, c] at grid[n, o...]. x [N, C, in...], grid [N, out..., d], y [N, C, out...].
struct GridSampleAttributes {
  GridSampleMode mode = GridSampleMode::bilinear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = true;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("padding", self.padding);
    visit("align_corners", self.align_corners);
  }
};
struct GridSampleForward : GridSampleAttributes {
  ASHLAR_INPUTS(x, grid);
  ASHLAR_OUTPUTS(y);
};
struct GridSampleBackward : GridSampleAttributes {
  ASHLAR_INPUTS(x, grid, dy);
  ASHLAR_OUTPUTS(dx, ASHLAR_OPTIONAL(dgrid));
};

}  // namespace ashlar
