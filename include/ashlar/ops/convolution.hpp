// Convolutions: forward, backward data, backward filter, causal depthwise.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>
#include <optional>

namespace ashlar {

enum class ConvMode : std::uint8_t {
  cross_correlation,
  convolution
};  // convolution flips the filter

// Padding, stride and dilation hold one value per spatial axis; empty means 0, 1 and 1.
struct ConvAttributes {
  Dims padding = {};                      // before the first element of each axis
  std::optional<Dims> post_padding = {};  // after the last element; default: `padding`
  Dims stride = {};
  Dims dilation = {};
  ConvMode mode = ConvMode::cross_correlation;
  double alpha = 1.0;
  double beta = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("padding", self.padding);
    visit("post_padding", self.post_padding);
    visit("stride", self.stride);
    visit("dilation", self.dilation);
    visit("mode", self.mode);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
  }
};

// y = alpha * conv(x, w) + beta * z. x [N, C, spatial...], w [K, C/groups, spatial...]; the group
// count is C / w.dims[1]. z may be bound to the memory of y.
struct ConvForward : ConvAttributes {
  ASHLAR_INPUTS(x, w, ASHLAR_OPTIONAL(z));
  ASHLAR_OUTPUTS(y);
};
// dx = alpha * (gradient of conv with respect to x) + beta * z.
struct ConvBackwardData : ConvAttributes {
  ASHLAR_INPUTS(dy, w, ASHLAR_OPTIONAL(z));
  ASHLAR_OUTPUTS(dx);
};
// dw = alpha * (gradient of conv with respect to w) + beta * z.
struct ConvBackwardFilter : ConvAttributes {
  ASHLAR_INPUTS(x, dy, ASHLAR_OPTIONAL(z));
  ASHLAR_OUTPUTS(dw);
};

enum class CausalConvActivation : std::uint8_t { identity, silu };

// Causal depthwise convolution along time:
// y[b, c, t] = act(bias[c] + sum over i of w[c, i] * x[b, c, t - (K - 1) + i]).
// x [B, C, T], w [C, K], bias [C]. initial_state [B, C, K - 1] precedes x (absent: zeros);
// final_state is the initial_state of the next chunk of the sequence.
struct CausalConvAttributes {
  CausalConvActivation activation = CausalConvActivation::identity;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("activation", self.activation);
  }
};
struct CausalConvForward : CausalConvAttributes {
  ASHLAR_INPUTS(x, w, ASHLAR_OPTIONAL(bias, initial_state));
  ASHLAR_OUTPUTS(y, ASHLAR_OPTIONAL(final_state));
};
struct CausalConvBackward : CausalConvAttributes {
  ASHLAR_INPUTS(x, w, dy, ASHLAR_OPTIONAL(bias, initial_state));
  ASHLAR_OUTPUTS(dx, ASHLAR_OPTIONAL(dw, dbias, dinitial_state));
};

}  // namespace ashlar
