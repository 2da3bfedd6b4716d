// Chooses the row kernel of a pointwise mode: SIMD or C library.
#include "cpu/kernels/pointwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/pointwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/pointwise-inl.h"
#include "cpu/kernels/pointwise_bits-inl.h"
#include "cpu/kernels/pointwise_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

PointwiseRow<float> VectorRowF32(PointwiseMode mode, DType compute) {
  if (const PointwiseRow<float> row = ArithmeticRow<float>(mode)) return row;
  if (const PointwiseRow<float> row = BitsRow<float>(mode, compute)) return row;
  return MathRow(mode);
}
PointwiseRow<double> VectorRowF64(PointwiseMode mode, DType compute) {
  const PointwiseRow<double> row = ArithmeticRow<double>(mode);
  return row ? row : BitsRow<double>(mode, compute);
}
void ScaleRowF32(float factor, const float* x, std::int64_t count, float* y) {
  ScaleRow(factor, x, count, y);
}
void ScaleRowF64(double factor, const double* x, std::int64_t count, double* y) {
  ScaleRow(factor, x, count, y);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels/pointwise_libm.hpp"

namespace ashlar::cpu {

HWY_EXPORT(VectorRowF32);
HWY_EXPORT(VectorRowF64);
HWY_EXPORT(ScaleRowF32);
HWY_EXPORT(ScaleRowF64);

template <>
PointwiseRow<float> pointwise_row<float>(PointwiseMode mode, DType compute) {
  const PointwiseRow<float> row = HWY_DYNAMIC_DISPATCH(VectorRowF32)(mode, compute);
  return row ? row : libm_row<float>(mode, false);
}

template <>
PointwiseRow<double> pointwise_row<double>(PointwiseMode mode, DType compute) {
  const bool integer = !is_floating(compute);
  const bool whole = integer && (mode == PointwiseMode::div || mode == PointwiseMode::reciprocal);
  const PointwiseRow<double> row =
      whole ? nullptr : HWY_DYNAMIC_DISPATCH(VectorRowF64)(mode, compute);
  return row ? row : libm_row<double>(mode, integer);
}

template <>
void scale_row<float>(float factor, const float* x, std::int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(ScaleRowF32)(factor, x, count, y);
}

template <>
void scale_row<double>(double factor, const double* x, std::int64_t count, double* y) {
  HWY_DYNAMIC_DISPATCH(ScaleRowF64)(factor, x, count, y);
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
