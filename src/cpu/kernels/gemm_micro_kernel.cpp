// Dispatches the GEMM micro-kernel to the best SIMD target.
#include "cpu/kernels/gemm_micro_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/gemm_micro_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/gemm_micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const GemmMicroKernel<float>& GemmMicroKernelF32() { return MakeGemmMicroKernel<float>(); }
const GemmMicroKernel<double>& GemmMicroKernelF64() { return MakeGemmMicroKernel<double>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(GemmMicroKernelF32);
HWY_EXPORT(GemmMicroKernelF64);

template <>
const GemmMicroKernel<float>& gemm_micro_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(GemmMicroKernelF32)();
}
template <>
const GemmMicroKernel<double>& gemm_micro_kernel<double>() {
  return HWY_DYNAMIC_DISPATCH(GemmMicroKernelF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
