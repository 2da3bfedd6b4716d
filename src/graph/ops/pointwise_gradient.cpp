// The gradients of the pointwise modes, as pointwise operations: they fuse.
#include "graph/ops/pointwise_gradient.hpp"

#include <cmath>
#include <numbers>

#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar {

namespace {

using M = PointwiseMode;

// y = f(p, q) with p = alpha1 * x and q = alpha2 * b.
class PointwiseRule {
 public:
  explicit PointwiseRule(GradientContext& context)
      : c_(context),
        op_(context.op<Pointwise>()),
        x_(context.input(Pointwise::x)),
        b_(context.input(Pointwise::b)),
        y_(context.output(Pointwise::y)),
        dy_(context.dy()),
        alpha1_(op_.alpha1),
        alpha2_(op_.alpha2) {}

  void add() {
    if (op_.mode >= M::relu_fwd && op_.mode <= M::gelu_approx_tanh_fwd) return add_activation();
    if (is_activation_gradient(op_.mode)) return add_activation_gradient();
    if (operand_count(op_.mode) == 1) return add_unary();
    if (op_.mode == M::binary_select) return add_select();
    if (c_.wants(Pointwise::x)) to_x(of_first());
    if (c_.wants(Pointwise::b)) to_b(of_second());
  }

 private:
  void to_x(Value gradient) { c_.add(Pointwise::x, gradient); }
  void to_b(Value gradient) { c_.add(Pointwise::b, gradient); }

  // The backward mode has the same attributes; it multiplies dy by alpha1 and x by alpha2.
  void add_activation() {
    Pointwise op = op_;
    op.alpha2 = alpha1_;
    const int distance = static_cast<int>(M::relu_bwd) - static_cast<int>(M::relu_fwd);
    to_x(c_.pointwise(static_cast<M>(static_cast<int>(op_.mode) + distance), {dy_, x_}, op));
  }

  // Linear in its first operand, the gradient of the activation.
  void add_activation_gradient() {
    if (c_.wants(Pointwise::x)) to_x(c_.pointwise(op_.mode, {dy_, b_}, op_));
    if (c_.wants(Pointwise::b) && op_.mode != M::relu_bwd)
      c_.refuse("second derivatives of this activation are not defined");
  }

  void add_unary() {
    if (!c_.wants(Pointwise::x)) return;
    switch (op_.mode) {
      case M::sqrt: return to_x(divide(dy_, y_, alpha1_ / 2));
      case M::abs: return to_x(c_.scale(c_.multiply_by_sign(dy_, x_), std::abs(alpha1_)));
      case M::cos: return to_x(c_.multiply(dy_, of_p(M::sin), -alpha1_));
      case M::sin: return to_x(c_.multiply(dy_, of_p(M::cos), alpha1_));
      case M::tan: {
        const Value slope = c_.pointwise(M::add_square, {c_.constant(1.0, y_.dims().rank()), y_});
        return to_x(c_.multiply(dy_, slope, alpha1_));
      }
      case M::exp: return to_x(c_.multiply(dy_, y_, alpha1_));
      case M::log: return to_x(divide(dy_, x_));
      case M::neg: return to_x(c_.scale(dy_, -alpha1_));
      case M::identity: return to_x(c_.scale(dy_, alpha1_));
      case M::rsqrt: return to_x(divide(c_.multiply(dy_, y_), x_, -0.5));
      case M::reciprocal: return to_x(c_.multiply(c_.multiply(dy_, y_), y_, -alpha1_));
      case M::erf: {
        const Value square = c_.multiply(x_, x_, -alpha1_ * alpha1_);
        return to_x(c_.multiply(dy_, c_.pointwise(M::exp, {square}),
                                2 * alpha1_ * std::numbers::inv_sqrtpi));
      }
      case M::log1p: {
        const Value sum =
            c_.pointwise(M::add, {c_.constant(1.0, x_.dims().rank()), x_}, {.alpha2 = alpha1_});
        return to_x(divide(dy_, sum, alpha1_));
      }
      case M::expm1: {
        const Value power = c_.pointwise(M::add, {y_, c_.constant(1.0, y_.dims().rank())});
        return to_x(c_.multiply(dy_, power, alpha1_));
      }
      default: return;  // floor, ceil, trunc, round, sign: piecewise constant
    }
  }

  void add_select() {
    const Value predicate = c_.input(Pointwise::predicate);
    if (c_.wants(Pointwise::x)) to_x(c_.select_or_zero(predicate, dy_, alpha1_));
    if (!c_.wants(Pointwise::b)) return;
    const Value zero = c_.constant(0.0, predicate.dims().rank());
    to_b(c_.pointwise(M::binary_select, {zero, dy_, predicate}, {.alpha2 = alpha2_}));
  }

  Value of_first() const {
    switch (op_.mode) {
      case M::add:
      case M::sub:
      case M::mod:
      case M::add_square: return c_.scale(dy_, alpha1_);
      case M::mul: return c_.multiply(dy_, b_, alpha1_ * alpha2_);
      case M::div: return divide(dy_, b_, alpha1_ / alpha2_);
      case M::min: return where_chosen(M::cmp_lt, alpha1_);
      case M::max: return where_chosen(M::cmp_gt, alpha1_);
      case M::pow: return of_base();
      case M::atan2: return divide(c_.multiply(dy_, b_, alpha1_ * alpha2_), squared_norm());
      default: c_.refuse(enum_name(op_.mode));
    }
  }

  Value of_second() const {
    switch (op_.mode) {
      case M::add: return c_.scale(dy_, alpha2_);
      case M::sub: return c_.scale(dy_, -alpha2_);
      case M::add_square: return c_.multiply(dy_, b_, 2 * alpha2_ * alpha2_);
      case M::mul: return c_.multiply(dy_, x_, alpha1_ * alpha2_);
      case M::div: return divide(c_.multiply(dy_, y_), b_, -1.0);
      case M::min: return where_chosen(M::cmp_gt, alpha2_);
      case M::max: return where_chosen(M::cmp_lt, alpha2_);
      case M::pow: return of_exponent();
      case M::atan2: return divide(c_.multiply(dy_, x_, -alpha1_ * alpha2_), squared_norm());
      default: c_.refuse("the divisor of mod has none");
    }
  }

  // min and max: all of dy to the chosen operand, half of it where both are equal.
  Value where_chosen(M is_chosen, double factor) const {
    const Pointwise factors{.alpha1 = alpha1_, .alpha2 = alpha2_};
    const Value tie = c_.select_or_zero(c_.pointwise(M::cmp_eq, {x_, b_}, factors), dy_, 0.5);
    const Value chosen = c_.pointwise(is_chosen, {x_, b_}, factors);
    return c_.scale(c_.pointwise(M::binary_select, {dy_, tie, chosen}), factor);
  }

  // q * p^(q - 1), and 0 where q is 0.
  Value of_base() const {
    const Tensor& exponent = b_.tensor();
    const Pointwise factors{.alpha1 = alpha1_};
    if (exponent.kind == TensorKind::constant) {
      const double q = alpha2_ * exponent.value;
      if (q == 0.0) return c_.scale(dy_, 0.0);
      const Value power =
          c_.pointwise(M::pow, {x_, c_.constant(q - 1, exponent.dims.rank())}, factors);
      return c_.multiply(dy_, power, q * alpha1_);
    }
    const int rank = exponent.dims.rank();
    const Value less = c_.pointwise(M::sub, {b_, c_.constant(1.0, rank)}, {.alpha1 = alpha2_});
    const Value slope = c_.multiply(c_.multiply(dy_, c_.pointwise(M::pow, {x_, less}, factors)), b_,
                                    alpha1_ * alpha2_);
    const Value is_zero = c_.pointwise(M::cmp_eq, {b_, c_.constant(0.0, rank)});
    return c_.pointwise(M::binary_select, {c_.constant(0.0, rank), slope, is_zero});
  }

  // p^q * log(p), and 0 where p^q is 0.
  Value of_exponent() const {
    const int rank = y_.dims().rank();
    const Value slope = c_.multiply(c_.multiply(dy_, y_), of_p(M::log), alpha2_);
    const Value is_zero = c_.pointwise(M::cmp_eq, {y_, c_.constant(0.0, rank)});
    return c_.pointwise(M::binary_select, {c_.constant(0.0, rank), slope, is_zero});
  }

  // p^2 + q^2
  Value squared_norm() const {
    return c_.pointwise(M::add_square, {c_.multiply(x_, x_, alpha1_ * alpha1_), b_},
                        {.alpha2 = alpha2_});
  }

  Value of_p(M mode) const { return c_.pointwise(mode, {x_}, {.alpha1 = alpha1_}); }
  Value divide(Value a, Value b, double factor = 1.0) const {
    return c_.pointwise(M::div, {a, b}, {.alpha1 = factor});
  }

  GradientContext& c_;
  Pointwise op_;
  Value x_, b_, y_, dy_;
  double alpha1_, alpha2_;
};

}  // namespace

void pointwise_gradient(GradientContext& context) { PointwiseRule(context).add(); }

}  // namespace ashlar
