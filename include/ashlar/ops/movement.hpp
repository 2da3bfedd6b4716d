// Data movement: reshape, transpose, slice, concat, im2col, tensor transform.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>
#include <optional>

namespace ashlar {

// The same elements in row-major order with other extents: those of y, or `dims`, where one -1 is
// inferred.
struct Reshape {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  Dims dims = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("dims", self.dims);
  }
};
// Axis a of y is axis permutation[a] of x.
struct Transpose {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  Dims permutation = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("permutation", self.permutation);
  }
};
// y[i] = x[start + i * step] for start + i * step < limit, per axis. Empty step means 1.
struct Slice {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  Dims start = {};
  Dims limit = {};
  Dims step = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("start", self.start);
    visit("limit", self.limit);
    visit("step", self.step);
  }
};
// Concatenates any number of inputs along `axis`.
struct Concat {
  ASHLAR_INPUTS(ASHLAR_VARIADIC(x));
  ASHLAR_OUTPUTS(y);
  std::int64_t axis = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
  }
};

// The im2col matrix of a convolution: y [N, C * window..., windows] from x [N, C, spatial...], the
// last window axis varying fastest.
struct Im2Col {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  Dims window = {};
  Dims padding = {};
  std::optional<Dims> post_padding = {};
  Dims stride = {};
  Dims dilation = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("window", self.window);
    visit("padding", self.padding);
    visit("post_padding", self.post_padding);
    visit("stride", self.stride);
    visit("dilation", self.dilation);
  }
};

// y = alpha * transform(x) + beta * z. Folding (space to depth) moves blocks of fold[a] elements
// along each spatial axis a into channels; `unfold` is the inverse. x is zero-padded before folding
// and cropped by the same amounts after unfolding.
struct TensorTransform {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(z));
  ASHLAR_OUTPUTS(y);
  Dims pad_before = {};  // one value per axis
  Dims pad_after = {};
  Dims fold = {};  // one value per spatial axis
  bool unfold = false;
  double alpha = 1.0;
  double beta = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("pad_before", self.pad_before);
    visit("pad_after", self.pad_after);
    visit("fold", self.fold);
    visit("unfold", self.unfold);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
  }
};

}  // namespace ashlar
