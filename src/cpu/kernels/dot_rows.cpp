// Dispatches the skinny-GEMM micro-kernel to the best SIMD target.
#include "cpu/kernels/dot_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/dot_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/dot_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
DotRows<float> DotsF32() { return Dots<float>; }
DotRows<double> DotsF64() { return Dots<double>; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(DotsF32);
HWY_EXPORT(DotsF64);

template <>
DotRows<float> dot_rows<float>() {
  return HWY_DYNAMIC_DISPATCH(DotsF32)();
}
template <>
DotRows<double> dot_rows<double>() {
  return HWY_DYNAMIC_DISPATCH(DotsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
