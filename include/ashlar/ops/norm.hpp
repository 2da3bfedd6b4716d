// Normalisation, and batch normalisation split into separate operations.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class NormMode : std::uint8_t { layer, instance, batch, group, rms, ada_layer };
enum class NormPhase : std::uint8_t { inference, training };

// y = (x - mean) * inv_variance * scale + bias, inv_variance = 1 / sqrt(variance + epsilon).
//   layer, rms: over `axes` (default: the axes scale spans; without scale, all but the first)
//   batch:      over all axes but 1 (channels)      instance: over the spatial axes
//   group:      over spatial axes and the channels of each of `groups` groups
//   ada_layer:  as layer, with a separate scale and bias for every index of the first axis
// rms uses mean = 0 and the mean square as variance. Batch norm in inference reads mean and
// inv_variance, or running_mean and running_var; all others compute their statistics from x.
struct NormForward {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(scale, bias, epsilon_tensor, mean, inv_variance, running_mean,
                                   running_var, momentum_tensor));
  ASHLAR_OUTPUTS(y,
                 ASHLAR_OPTIONAL(out_mean, out_inv_variance, next_running_mean, next_running_var));
  NormMode mode = NormMode::layer;
  NormPhase phase = NormPhase::training;
  double epsilon = 1e-5;
  double momentum =
      0.1;  // next_running = (1 - momentum) * running + momentum * batch (variance unbiased)
  std::int64_t groups = 1;
  Dims axes = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("phase", self.phase);
    visit("epsilon", self.epsilon);
    visit("momentum", self.momentum);
    visit("groups", self.groups);
    visit("axes", self.axes);
  }
};
// mean and inv_variance are the outputs of the forward pass; if absent they are recomputed from x.
struct NormBackward {
  ASHLAR_INPUTS(x, dy, ASHLAR_OPTIONAL(scale, mean, inv_variance, epsilon_tensor));
  ASHLAR_OUTPUTS(dx, ASHLAR_OPTIONAL(dscale, dbias));
  NormMode mode = NormMode::layer;
  double epsilon = 1e-5;
  std::int64_t groups = 1;
  Dims axes = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("epsilon", self.epsilon);
    visit("groups", self.groups);
    visit("axes", self.axes);
  }
};

// sum and sq_sum over all axes but 1 (channels) of x and x^2.
struct GenStats {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(sum, sq_sum);

  template <class Self, class Visitor>
  static void attributes(Self&, Visitor&&) {}
};

// Statistics and affine coefficients of batch norm from the sums of `count` elements per channel:
//   mean = sum / count           variance = max(sq_sum / count - mean^2, 0)
//   eq_scale = scale / sqrt(variance + epsilon)        eq_bias = bias - mean * eq_scale
// so that y = x * eq_scale + eq_bias; running statistics as in NormForward.
// In inference the statistics are running_mean and running_var, and the sums may be absent.
// epsilon_tensor, momentum_tensor and count_tensor override the attributes.
struct BnFinalize {
  ASHLAR_INPUTS(ASHLAR_OPTIONAL(sum, sq_sum), scale, bias,
                ASHLAR_OPTIONAL(running_mean, running_var, epsilon_tensor, momentum_tensor,
                                count_tensor));
  ASHLAR_OUTPUTS(eq_scale, eq_bias,
                 ASHLAR_OPTIONAL(saved_mean, saved_inv_variance, next_running_mean,
                                 next_running_var));
  NormPhase phase = NormPhase::training;
  double epsilon = 1e-5;
  double momentum = 0.1;
  std::int64_t count = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("phase", self.phase);
    visit("epsilon", self.epsilon);
    visit("momentum", self.momentum);
    visit("count", self.count);
  }
};

// The reductions of the batch norm gradient, and the coefficients of
// dx = eq_dy_scale * dy + eq_x_scale * x + eq_bias.
struct BnBackwardWeights {
  ASHLAR_INPUTS(x, dy, mean, inv_variance, scale);
  ASHLAR_OUTPUTS(dscale, dbias, ASHLAR_OPTIONAL(eq_dy_scale, eq_x_scale, eq_bias));

  template <class Self, class Visitor>
  static void attributes(Self&, Visitor&&) {}
};

}  // namespace ashlar
