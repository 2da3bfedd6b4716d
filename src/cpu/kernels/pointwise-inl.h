// Pointwise operations that map to SIMD instructions, on float and double.
#include <ashlar/ops.hpp>
#include <cstdint>
#include <limits>

#include "cpu/kernels/loops-inl.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_POINTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_POINTWISE_INL_H_
#undef ASHLAR_CPU_POINTWISE_INL_H_
#else
#define ASHLAR_CPU_POINTWISE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NaN differs from everything; hn::Ne guarantees that on some targets only.
template <class V>
HWY_INLINE auto NotEqual(V a, V b) {
  return hn::Not(hn::Eq(a, b));
}

template <PointwiseMode kMode, class D, class V>
HWY_INLINE V ArithmeticUnary(D d, const Pointwise& op, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  if constexpr (kMode == PointwiseMode::sqrt) return hn::Sqrt(x);
  if constexpr (kMode == PointwiseMode::abs) return hn::Abs(x);
  if constexpr (kMode == PointwiseMode::ceil) return hn::Ceil(x);
  if constexpr (kMode == PointwiseMode::floor) return hn::Floor(x);
  if constexpr (kMode == PointwiseMode::trunc) return hn::Trunc(x);
  if constexpr (kMode == PointwiseMode::round) return hn::Round(x);
  if constexpr (kMode == PointwiseMode::sign) {  // 0 and NaN stay
    const V zero = hn::Zero(d);
    return hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), x));
  }
  if constexpr (kMode == PointwiseMode::neg) return hn::Neg(x);
  if constexpr (kMode == PointwiseMode::rsqrt) return hn::Div(one, hn::Sqrt(x));
  if constexpr (kMode == PointwiseMode::identity) return x;
  if constexpr (kMode == PointwiseMode::reciprocal) return hn::Div(one, x);
  if constexpr (kMode == PointwiseMode::relu_fwd) {
    const V lower = hn::Set(d, static_cast<T>(op.relu_lower_clip));
    const V upper = hn::Set(d, static_cast<T>(op.relu_upper_clip));
    const V slope = hn::Set(d, static_cast<T>(op.relu_lower_slope));
    const V below =
        op.relu_lower_slope == 0.0 ? lower : hn::MulAdd(slope, hn::Sub(x, lower), lower);
    return hn::IfThenElse(hn::Lt(x, lower), below, hn::IfThenElse(hn::Gt(x, upper), upper, x));
  }
  if constexpr (kMode == PointwiseMode::logical_not)
    return hn::IfThenElseZero(hn::Eq(x, hn::Zero(d)), one);
}

template <PointwiseMode kMode, class D, class V>
HWY_INLINE V ArithmeticBinary(D d, const Pointwise& op, V x, V b) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  const V zero = hn::Zero(d);
  if constexpr (kMode == PointwiseMode::add) return hn::Add(x, b);
  if constexpr (kMode == PointwiseMode::mul) return hn::Mul(x, b);
  if constexpr (kMode == PointwiseMode::sub) return hn::Sub(x, b);
  if constexpr (kMode == PointwiseMode::div) return hn::Div(x, b);
  if constexpr (kMode == PointwiseMode::add_square) return hn::MulAdd(b, b, x);
  if constexpr (kMode == PointwiseMode::min || kMode == PointwiseMode::max) {
    const V extreme = kMode == PointwiseMode::min ? hn::Min(x, b) : hn::Max(x, b);
    // Propagates NaN of either operand.
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(hn::Eq(b, b), extreme, b), x);
  }
  if constexpr (kMode == PointwiseMode::relu_bwd) {  // x is dy, b the forward operand
    const V lower = hn::Set(d, static_cast<T>(op.relu_lower_clip));
    const V upper = hn::Set(d, static_cast<T>(op.relu_upper_clip));
    const V slope = hn::Set(d, static_cast<T>(op.relu_lower_slope));
    // At the kinks the slope is that of the clipped side; an infinite upper clip does not clip
    // infinity.
    const bool clips = op.relu_upper_clip < std::numeric_limits<double>::infinity();
    const V inside = clips ? hn::IfThenElse(hn::Ge(b, upper), zero, one) : one;
    return hn::Mul(x, hn::IfThenElse(hn::Le(b, lower), slope, inside));
  }
  if constexpr (kMode == PointwiseMode::cmp_eq) return hn::IfThenElseZero(hn::Eq(x, b), one);
  if constexpr (kMode == PointwiseMode::cmp_neq) return hn::IfThenElseZero(NotEqual(x, b), one);
  if constexpr (kMode == PointwiseMode::cmp_gt) return hn::IfThenElseZero(hn::Gt(x, b), one);
  if constexpr (kMode == PointwiseMode::cmp_ge) return hn::IfThenElseZero(hn::Ge(x, b), one);
  if constexpr (kMode == PointwiseMode::cmp_lt) return hn::IfThenElseZero(hn::Lt(x, b), one);
  if constexpr (kMode == PointwiseMode::cmp_le) return hn::IfThenElseZero(hn::Le(x, b), one);
  const auto x_true = NotEqual(x, zero);
  const auto b_true = NotEqual(b, zero);
  if constexpr (kMode == PointwiseMode::logical_and)
    return hn::IfThenElseZero(hn::And(x_true, b_true), one);
  if constexpr (kMode == PointwiseMode::logical_or)
    return hn::IfThenElseZero(hn::Or(x_true, b_true), one);
}

template <PointwiseMode kMode, class T>
void UnaryRow(const Pointwise& op, const T* x, const T*, const T*, std::int64_t count, T* y,
              const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx) HWY_ATTR { return ArithmeticUnary<kMode>(d, op, vx); };
  TransformRowWithHints(d, count, y, hints, apply, x);
}

template <PointwiseMode kMode, class T>
void BinaryRow(const Pointwise& op, const T* x, const T* b, const T*, std::int64_t count, T* y,
               const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx, auto vb)
                         HWY_ATTR { return ArithmeticBinary<kMode>(d, op, vx, vb); };
  TransformRowWithHints(d, count, y, hints, apply, x, b);
}

template <class T>
void SelectRow(const Pointwise&, const T* x, const T* b, const T* predicate, std::int64_t count,
               T* y, const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx, auto vb, auto vp)
                         HWY_ATTR { return hn::IfThenElse(NotEqual(vp, hn::Zero(d)), vx, vb); };
  TransformRowWithHints(d, count, y, hints, apply, x, b, predicate);
}

template <class T>
void ScaleRow(T factor, const T* x, std::int64_t count, T* y) {
  const hn::ScalableTag<T> d;
  const auto vfactor = hn::Set(d, factor);
  TransformRow(
      d, d, count, y, [&](auto vx) HWY_ATTR { return hn::Mul(vfactor, vx); }, x);
}

// Null for modes that need elementary functions.
template <class T>
PointwiseRow<T> ArithmeticRow(PointwiseMode mode) {
  using enum PointwiseMode;
  switch (mode) {
    case add: return BinaryRow<add, T>;
    case mul: return BinaryRow<mul, T>;
    case min: return BinaryRow<min, T>;
    case max: return BinaryRow<max, T>;
    case add_square: return BinaryRow<add_square, T>;
    case div: return BinaryRow<div, T>;
    case sub: return BinaryRow<sub, T>;
    case sqrt: return UnaryRow<sqrt, T>;
    case abs: return UnaryRow<abs, T>;
    case ceil: return UnaryRow<ceil, T>;
    case floor: return UnaryRow<floor, T>;
    case trunc: return UnaryRow<trunc, T>;
    case round: return UnaryRow<round, T>;
    case sign: return UnaryRow<sign, T>;
    case neg: return UnaryRow<neg, T>;
    case rsqrt: return UnaryRow<rsqrt, T>;
    case identity: return UnaryRow<identity, T>;
    case reciprocal: return UnaryRow<reciprocal, T>;
    case relu_fwd: return UnaryRow<relu_fwd, T>;
    case relu_bwd: return BinaryRow<relu_bwd, T>;
    case cmp_eq: return BinaryRow<cmp_eq, T>;
    case cmp_neq: return BinaryRow<cmp_neq, T>;
    case cmp_gt: return BinaryRow<cmp_gt, T>;
    case cmp_ge: return BinaryRow<cmp_ge, T>;
    case cmp_lt: return BinaryRow<cmp_lt, T>;
    case cmp_le: return BinaryRow<cmp_le, T>;
    case logical_and: return BinaryRow<logical_and, T>;
    case logical_or: return BinaryRow<logical_or, T>;
    case logical_not: return UnaryRow<logical_not, T>;
    case binary_select: return SelectRow<T>;
    default: return nullptr;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
