// Division of a row by a scalar, dispatched to the best SIMD target.
#include "cpu/kernels/divide.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/divide.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Divide(const T* x, T divisor, std::int64_t count, T* y) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, divisor);
  TransformRow(
      d, d, count, y, [&](auto value) HWY_ATTR { return hn::Div(value, by); }, x);
}
DivideRow<float> DivideF32() { return Divide<float>; }
DivideRow<double> DivideF64() { return Divide<double>; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(DivideF32);
HWY_EXPORT(DivideF64);

template <>
DivideRow<float> divide_row<float>() {
  return HWY_DYNAMIC_DISPATCH(DivideF32)();
}
template <>
DivideRow<double> divide_row<double>() {
  return HWY_DYNAMIC_DISPATCH(DivideF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
