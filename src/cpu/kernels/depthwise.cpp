// Dispatches depthwise and small-group convolution to the best SIMD target.
#include "cpu/kernels/depthwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/depthwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/depthwise_filter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
DepthwiseKernel<float> DepthwiseKernelF32() { return MakeDepthwiseKernel<float>(); }
DepthwiseKernel<double> DepthwiseKernelF64() { return MakeDepthwiseKernel<double>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(DepthwiseKernelF32);
HWY_EXPORT(DepthwiseKernelF64);

template <>
DepthwiseKernel<float> depthwise_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(DepthwiseKernelF32)();
}
template <>
DepthwiseKernel<double> depthwise_kernel<double>() {
  return HWY_DYNAMIC_DISPATCH(DepthwiseKernelF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
