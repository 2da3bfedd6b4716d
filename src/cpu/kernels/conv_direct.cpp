// Dispatches direct convolution rows to the best SIMD target.
#include "cpu/kernels/conv_direct.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/conv_direct.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/conv_direct-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
ConvDirect<float> ConvDirectF32() { return MakeConvDirect<float>(); }
ConvDirect<double> ConvDirectF64() { return MakeConvDirect<double>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(ConvDirectF32);
HWY_EXPORT(ConvDirectF64);

template <>
ConvDirect<float> conv_direct<float>() {
  return HWY_DYNAMIC_DISPATCH(ConvDirectF32)();
}
template <>
ConvDirect<double> conv_direct<double>() {
  return HWY_DYNAMIC_DISPATCH(ConvDirectF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
