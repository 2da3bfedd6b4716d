#include "cpu/kernels/gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/gemm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
GemmKernel<float> GemmKernelF32() { return MakeGemmKernel<float>(); }
GemmKernel<double> GemmKernelF64() { return MakeGemmKernel<double>(); }
GemmKernel<std::int32_t> GemmKernelPairs() { return MakeGemmKernel<std::int32_t>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(GemmKernelF32);
HWY_EXPORT(GemmKernelF64);
HWY_EXPORT(GemmKernelPairs);

template <>
GemmKernel<float> gemm_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(GemmKernelF32)();
}
template <>
GemmKernel<double> gemm_kernel<double>() {
  return HWY_DYNAMIC_DISPATCH(GemmKernelF64)();
}

template <>
GemmKernel<std::int32_t> gemm_kernel<std::int32_t>() {
  return HWY_DYNAMIC_DISPATCH(GemmKernelPairs)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
