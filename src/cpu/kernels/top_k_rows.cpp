// Dispatches searches for candidates of top_k to the best SIMD target.
#include "cpu/kernels/top_k_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/top_k_rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/top_k_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const TopKRows<float>* TopKRowsF32() { return &kTopKRows<float>; }
const TopKRows<double>* TopKRowsF64() { return &kTopKRows<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(TopKRowsF32);
HWY_EXPORT(TopKRowsF64);

template <>
const TopKRows<float>& top_k_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(TopKRowsF32)();
}
template <>
const TopKRows<double>& top_k_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(TopKRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
