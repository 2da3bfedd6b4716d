// Dispatches norm and softmax rows to the best SIMD target.
#include "cpu/kernels/norm_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/norm_rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/norm_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const NormRows<float>* NormRowsF32() { return &kNormRows<float>; }
const NormRows<double>* NormRowsF64() { return &kNormRows<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(NormRowsF32);
HWY_EXPORT(NormRowsF64);

template <>
const NormRows<float>& norm_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(NormRowsF32)();
}
template <>
const NormRows<double>& norm_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(NormRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
