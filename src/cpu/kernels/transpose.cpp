#include "cpu/kernels/transpose.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/transpose.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
Transpose TransposeOfTarget() { return TransposeFloats; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(TransposeOfTarget);
Transpose transpose_kernel() { return HWY_DYNAMIC_DISPATCH(TransposeOfTarget)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
