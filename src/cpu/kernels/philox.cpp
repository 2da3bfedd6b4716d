// Dispatches the Philox stream to the best SIMD target.
#include "cpu/kernels/philox.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/philox.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

PhiloxRow PhiloxRunFunction() { return &PhiloxRun; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(PhiloxRunFunction);

PhiloxRow philox_row() { return HWY_DYNAMIC_DISPATCH(PhiloxRunFunction)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
