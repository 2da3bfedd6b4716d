#include "cpu/kernels/transpose.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/transpose.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
Transpose<float> TransposeF32() { return &TransposeRows<float>; }
Transpose<double> TransposeF64() { return &TransposeRows<double>; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(TransposeF32);
HWY_EXPORT(TransposeF64);

template <>
Transpose<float> transpose<float>() {
  return HWY_DYNAMIC_DISPATCH(TransposeF32)();
}
template <>
Transpose<double> transpose<double>() {
  return HWY_DYNAMIC_DISPATCH(TransposeF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
