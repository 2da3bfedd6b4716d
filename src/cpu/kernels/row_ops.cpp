// Dispatches row arithmetic to the best SIMD target.
#include "cpu/kernels/row_ops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/row_ops.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/row_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const RowOps<float>* RowOpsF32() { return &kRowOps<float>; }
const RowOps<double>* RowOpsF64() { return &kRowOps<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(RowOpsF32);
HWY_EXPORT(RowOpsF64);

template <>
const RowOps<float>& row_ops<float>() {
  return *HWY_DYNAMIC_DISPATCH(RowOpsF32)();
}
template <>
const RowOps<double>& row_ops<double>() {
  return *HWY_DYNAMIC_DISPATCH(RowOpsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
