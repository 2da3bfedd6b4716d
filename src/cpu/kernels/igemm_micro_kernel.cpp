// Dispatches the indirect-GEMM micro-kernel to the best SIMD target.
#include "cpu/kernels/igemm_micro_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/igemm_micro_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/igemm_micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const IgemmMicroKernel<float>& IgemmMicroKernelF32() { return MakeIgemmMicroKernel<float>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(IgemmMicroKernelF32);

template <>
const IgemmMicroKernel<float>& igemm_micro_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(IgemmMicroKernelF32)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
