// Dispatches the int8 micro-kernel to the best SIMD target.
#include "cpu/kernels/int8_micro_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/int8_micro_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/int8_micro_kernel-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(BestInt8MicroKernel);
HWY_EXPORT(PortableInt8MicroKernel);

const Int8MicroKernel& int8_micro_kernel() { return HWY_DYNAMIC_DISPATCH(BestInt8MicroKernel)(); }
const Int8MicroKernel& portable_int8_micro_kernel() {
  return HWY_DYNAMIC_DISPATCH(PortableInt8MicroKernel)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
