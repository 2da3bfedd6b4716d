// The operations: one plain struct per kind, holding its attributes and the names of its operands.
//
// `In` and `Out` number the operands as they stand in Node::inputs and Node::outputs. Every struct
// lists its attributes once, in `attributes`, which feeds JSON, text, hashing and equality.
// docs/ops/ defines what each operation computes.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

namespace ashlar {

enum class ConvMode : std::uint8_t {
  cross_correlation,
  convolution
};  // convolution flips the filter

// Padding, stride and dilation hold one value per spatial axis; left empty they mean 0, 1 and 1.
struct ConvAttributes {
  Dims padding = {};                      // before the first element of each axis
  std::optional<Dims> post_padding = {};  // after the last one; same as `padding` when absent
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

// y = alpha * conv(x, w) + beta * z. x [N, C, spatial...], w [K, C/groups, spatial...]; the number
// of groups is C / w's second extent. z may be bound to y's memory.
struct ConvForward : ConvAttributes {
  enum In { x, w, z };
  enum Out { y };
};
// dx = alpha * (gradient of conv with respect to x) + beta * z.
struct ConvBackwardData : ConvAttributes {
  enum In { dy, w, z };
  enum Out { dx };
};
// dw = alpha * (gradient of conv with respect to w) + beta * z.
struct ConvBackwardFilter : ConvAttributes {
  enum In { x, dy, z };
  enum Out { dw };
};

// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; batch axes broadcast.
// m_override, n_override, k_override hold one length per batch; c is `padding_value` outside them.
struct Matmul {
  enum In { a, b, m_override, n_override, k_override };
  enum Out { c };
  double padding_value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("padding_value", self.padding_value);
  }
};

enum class PointwiseMode : std::uint8_t {
  // arithmetic: x op b
  add,
  mul,
  min,
  max,
  add_square,
  div,
  mod,
  pow,
  sub,
  atan2,
  // unary
  sqrt,
  abs,
  ceil,
  cos,
  exp,
  floor,
  log,
  neg,
  rsqrt,
  sin,
  tan,
  erf,
  identity,
  reciprocal,
  // activations and their gradients (dy, x)
  relu_fwd,
  tanh_fwd,
  sigmoid_fwd,
  elu_fwd,
  gelu_fwd,
  softplus_fwd,
  swish_fwd,
  gelu_approx_tanh_fwd,
  relu_bwd,
  tanh_bwd,
  sigmoid_bwd,
  elu_bwd,
  gelu_bwd,
  softplus_bwd,
  swish_bwd,
  gelu_approx_tanh_bwd,
  // comparisons: x op b, result boolean
  cmp_eq,
  cmp_neq,
  cmp_gt,
  cmp_ge,
  cmp_lt,
  cmp_le,
  logical_and,
  logical_or,
  logical_not,
  gen_index,      // the coordinate along `axis`
  binary_select,  // predicate ? x : b
};
inline constexpr int kPointwiseModeCount = 51;

// First operand x (dy for gradients), second b (x for gradients), third the predicate of
// binary_select. y = op(alpha1 * x, alpha2 * b). Operands broadcast where their extent is 1.
struct Pointwise {
  enum In { x, b, predicate };
  enum Out { y };
  PointwiseMode mode = PointwiseMode::identity;
  double alpha1 = 1.0;
  double alpha2 = 1.0;
  double relu_lower_clip = 0.0;
  double relu_upper_clip = std::numeric_limits<double>::infinity();
  double relu_lower_slope = 0.0;
  double elu_alpha = 1.0;
  double softplus_beta = 1.0;
  double swish_beta = 1.0;
  std::int64_t axis = 0;  // gen_index only

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("alpha1", self.alpha1);
    visit("alpha2", self.alpha2);
    visit("relu_lower_clip", self.relu_lower_clip);
    visit("relu_upper_clip", self.relu_upper_clip);
    visit("relu_lower_slope", self.relu_lower_slope);
    visit("elu_alpha", self.elu_alpha);
    visit("softplus_beta", self.softplus_beta);
    visit("swish_beta", self.swish_beta);
    visit("axis", self.axis);
  }
};

enum class ReductionMode : std::uint8_t {
  add,
  mul,
  min,
  max,
  amax,
  avg,
  norm1,
  norm2,
  mul_no_zeros
};

// Reduces every axis in which y has extent 1 and x has not. `axes` serves to infer y; empty means
// all.
struct Reduction {
  enum In { x };
  enum Out { y };
  ReductionMode mode = ReductionMode::add;
  Dims axes = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("axes", self.axes);
  }
};

enum class ResampleMode : std::uint8_t {
  nearest,
  bilinear,
  avgpool_include_padding,
  avgpool_exclude_padding,
  maxpool
};
enum class PaddingMode : std::uint8_t { zero, neg_inf, edge };

// Pooling uses window, stride and padding; nearest and bilinear use `size` (output spatial extents)
// and `align_corners`.
struct ResampleAttributes {
  ResampleMode mode = ResampleMode::maxpool;
  Dims window = {};
  Dims stride = {};  // same as the window when empty
  Dims padding = {};
  std::optional<Dims> post_padding = {};
  PaddingMode padding_mode = PaddingMode::neg_inf;  // what maxpool sees outside x; avgpool sees 0
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
  enum In { x };
  enum Out { y, index };  // index: row-major position of the maximum inside its window
};
// maxpool needs index or x; the others need only the extents of dx.
struct ResampleBackward : ResampleAttributes {
  enum In { dy, x, index };
  enum Out { dx };
};

enum class NormMode : std::uint8_t { layer, instance, batch, group, rms };
enum class NormPhase : std::uint8_t { inference, training };

// y = (x - mean) * inv_variance * scale + bias, inv_variance = 1 / sqrt(variance + epsilon).
//   layer, rms: over `axes` (default: the axes scale spans; without scale, all but the first)
//   batch:      over all axes but 1 (channels)      instance: over the spatial axes
//   group:      over spatial axes and the channels of each of `groups` groups
// rms uses mean = 0 and the mean square as variance. Batch norm in inference takes mean and
// inv_variance, or running_mean and running_var; all others compute their statistics from x.
struct NormForward {
  enum In { x, scale, bias, epsilon_tensor, mean, inv_variance, running_mean, running_var };
  enum Out { y, out_mean, out_inv_variance, next_running_mean, next_running_var };
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
// mean and inv_variance are those of the forward pass; recomputed from x when absent.
struct NormBackward {
  enum In { x, dy, scale, mean, inv_variance, epsilon_tensor };
  enum Out { dx, dscale, dbias };
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

struct SoftmaxAttributes {
  std::int64_t axis = -1;
  bool log = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
    visit("log", self.log);
  }
};
struct SoftmaxForward : SoftmaxAttributes {
  enum In { x };
  enum Out { y, stats };  // stats = max + log(sum(exp(x - max))) along the axis
};
struct SoftmaxBackward : SoftmaxAttributes {
  enum In { y, dy };
  enum Out { dx };
};

enum class MaskAlignment : std::uint8_t { top_left, bottom_right };

// Query row i sees key column j when i + shift - left_bound < j <= i + shift + right_bound, where
// shift is 0 (top_left) or kv_length - q_length (bottom_right). An absent bound does not mask.
struct AttentionAttributes {
  std::optional<double> scale = {};  // 1 / sqrt(head dim) when absent
  std::optional<std::int64_t> left_bound = {};
  std::optional<std::int64_t> right_bound = {};
  MaskAlignment alignment = MaskAlignment::top_left;
  double dropout = 0.0;  // probability that a weight is dropped

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("scale", self.scale);
    visit("left_bound", self.left_bound);
    visit("right_bound", self.right_bound);
    visit("alignment", self.alignment);
    visit("dropout", self.dropout);
  }
};
// o = dropout(softmax(mask(scale * q k^T + bias))) v, per batch and head.
// q [B, H, Sq, D], k [B, Hk, Skv, D], v [B, Hv, Skv, Dv]; Hk and Hv divide H.
// seq_len_q, seq_len_kv [B, 1, 1, 1]; stats [B, H, Sq, 1]. A row that sees nothing gives o = 0,
// stats = -inf. scale_tensor, when given, overrides the attribute. dropout_mask (keep = true)
// replaces seed and offset.
struct AttentionForward : AttentionAttributes {
  enum In {
    q,
    k,
    v,
    bias,
    seq_len_q,
    seq_len_kv,
    dropout_seed,
    dropout_offset,
    dropout_mask,
    scale_tensor
  };
  enum Out { o, stats };
};
struct AttentionBackward : AttentionAttributes {
  enum In {
    q,
    k,
    v,
    o,
    d_o,
    stats,
    bias,
    seq_len_q,
    seq_len_kv,
    dropout_seed,
    dropout_offset,
    dropout_mask,
    scale_tensor
  };
  enum Out { dq, dk, dv, dbias };
};

enum class RngDistribution : std::uint8_t { bernoulli, uniform, normal };

// Philox4x32-10. Element i (row-major) takes lane i % 4 of counter offset + i / 4 under key `seed`.
struct Rng {
  enum In { seed_tensor, offset_tensor };
  enum Out { y };
  RngDistribution distribution = RngDistribution::bernoulli;
  double probability = 0.5;  // bernoulli: of a 1
  double minimum = 0.0, maximum = 1.0;
  double mean = 0.0, standard_deviation = 1.0;
  std::int64_t seed = 0;
  std::int64_t offset = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("distribution", self.distribution);
    visit("probability", self.probability);
    visit("minimum", self.minimum);
    visit("maximum", self.maximum);
    visit("mean", self.mean);
    visit("standard_deviation", self.standard_deviation);
    visit("seed", self.seed);
    visit("offset", self.offset);
  }
};

// Same elements in row-major order, other extents (those of y, or `dims`; one -1 is worked out).
struct Reshape {
  enum In { x };
  enum Out { y };
  Dims dims = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("dims", self.dims);
  }
};
// Axis a of y is axis permutation[a] of x.
struct Transpose {
  enum In { x };
  enum Out { y };
  Dims permutation = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("permutation", self.permutation);
  }
};
// y[i] = x[start + i * step] for start + i * step < limit, per axis. Empty step means 1.
struct Slice {
  enum In { x };
  enum Out { y };
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
// Any number of inputs, joined along `axis`.
struct Concat {
  enum Out { y };
  std::int64_t axis = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
  }
};

using Op = std::variant<ConvForward, ConvBackwardData, ConvBackwardFilter, Matmul, Pointwise,
                        Reduction, ResampleForward, ResampleBackward, NormForward, NormBackward,
                        SoftmaxForward, SoftmaxBackward, AttentionForward, AttentionBackward, Rng,
                        Reshape, Transpose, Slice, Concat>;

}  // namespace ashlar
