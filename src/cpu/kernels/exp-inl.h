// exp() for softmax, compiled once per SIMD target: shorter than a full-range exponential.
#if defined(ASHLAR_CPU_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_EXP_INL_H_
#undef ASHLAR_CPU_KERNELS_EXP_INL_H_
#else
#define ASHLAR_CPU_KERNELS_EXP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x) for x <= 88; 0 below -87, which is negligible in any sum of weights. Not for NaN. Relative
// error for float below 2e-7: x = n ln 2 + r, and 1 + r + r^2 p(r) with a polynomial p fitted at
// Chebyshev nodes of |r| <= ln 2 / 2. Terms are summed in pairs (Estrin), since latency limits a
// row.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SoftmaxExp(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    return hn::Exp(d, x);
  } else {
    const hn::RebindToUnsigned<D> du;
    // Adding it leaves the nearest integer in the low mantissa bits.
    const V magic = hn::Set(d, 0x1.8p23f);
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
    const V r = hn::NegMulAdd(hn::Sub(shifted, magic), hn::Set(d, 0.693147182f), x);
    const V r2 = hn::Mul(r, r);
    const V low = hn::MulAdd(r, hn::Set(d, 0.16666576266288757f), hn::Set(d, 0.5f));
    V high = hn::MulAdd(r, hn::Set(d, 0.00836323294788599f), hn::Set(d, 0.04166655242443085f));
    high = hn::MulAdd(r2, hn::Set(d, 0.0013926250394433737f), high);
    const V p = hn::MulAdd(r2, high, low);
    const V result = hn::MulAdd(r2, p, hn::Add(r, hn::Set(d, 1.0f)));
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
    return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -87.0f)),
                              hn::BitCast(d, hn::Add(hn::BitCast(du, result), exponent)));
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
