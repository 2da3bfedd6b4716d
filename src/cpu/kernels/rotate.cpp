// Dispatches rotary position embeddings to the best SIMD target.
#include "cpu/kernels/rotate.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/rotate.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/rotate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const RotateRows<float>* RotateRowsF32() { return &kRotateRows<float>; }
const RotateRows<double>* RotateRowsF64() { return &kRotateRows<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(RotateRowsF32);
HWY_EXPORT(RotateRowsF64);

template <>
const RotateRows<float>& rotate_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(RotateRowsF32)();
}
template <>
const RotateRows<double>& rotate_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(RotateRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
