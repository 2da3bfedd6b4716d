// Dispatches local response normalisation to the best SIMD target.
#include "cpu/kernels/local_norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/local_norm.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/local_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

LocalNormRow<float> LocalNormF32() { return &LocalNorm<float>; }
LocalNormRow<double> LocalNormF64() { return &LocalNorm<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(LocalNormF32);
HWY_EXPORT(LocalNormF64);

template <>
LocalNormRow<float> local_norm_row<float>() {
  return HWY_DYNAMIC_DISPATCH(LocalNormF32)();
}
template <>
LocalNormRow<double> local_norm_row<double>() {
  return HWY_DYNAMIC_DISPATCH(LocalNormF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
