// Dispatches row interleaving of GEMM packing to the best SIMD target.
#include "cpu/kernels/interleave.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/interleave.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/interleave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
InterleaveRows<float> InterleaveF32() { return Interleave<float>; }
InterleaveRows<double> InterleaveF64() { return Interleave<double>; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(InterleaveF32);
HWY_EXPORT(InterleaveF64);

template <>
InterleaveRows<float> interleave_rows<float>() {
  return HWY_DYNAMIC_DISPATCH(InterleaveF32)();
}
template <>
InterleaveRows<double> interleave_rows<double>() {
  return HWY_DYNAMIC_DISPATCH(InterleaveF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
