// Dispatches NCHW small-group convolution to the best SIMD target.
#include "cpu/kernels/plane_lines.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/plane_lines.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/plane_lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
PlaneKernel<float> PlaneKernelF32() { return MakePlaneKernel<float>(); }
PlaneKernel<double> PlaneKernelF64() { return MakePlaneKernel<double>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(PlaneKernelF32);
HWY_EXPORT(PlaneKernelF64);

template <>
PlaneKernel<float> plane_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(PlaneKernelF32)();
}
template <>
PlaneKernel<double> plane_kernel<double>() {
  return HWY_DYNAMIC_DISPATCH(PlaneKernelF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
