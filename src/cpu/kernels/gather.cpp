// Dispatches weighted gathers to the best SIMD target.
#include "cpu/kernels/gather.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/gather.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/gather-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

GatherSum<float> GatherF32() { return &Gather<float>; }
GatherSum<double> GatherF64() { return &Gather<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(GatherF32);
HWY_EXPORT(GatherF64);

template <>
GatherSum<float> gather_sum<float>() {
  return HWY_DYNAMIC_DISPATCH(GatherF32)();
}
template <>
GatherSum<double> gather_sum<double>() {
  return HWY_DYNAMIC_DISPATCH(GatherF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
