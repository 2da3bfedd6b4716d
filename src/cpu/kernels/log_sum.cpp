// Dispatches the CTC recursion step to the best SIMD target.
#include "cpu/kernels/log_sum.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/log_sum.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/log_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

LogSum<float> LogSumF32() { return &LogSumRow<float>; }
LogSum<double> LogSumF64() { return &LogSumRow<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(LogSumF32);
HWY_EXPORT(LogSumF64);

template <>
LogSum<float> log_sum<float>() {
  return HWY_DYNAMIC_DISPATCH(LogSumF32)();
}
template <>
LogSum<double> log_sum<double>() {
  return HWY_DYNAMIC_DISPATCH(LogSumF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
