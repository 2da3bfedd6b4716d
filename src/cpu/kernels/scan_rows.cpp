// Dispatches scans of rows to the best SIMD target.
#include "cpu/kernels/scan_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/scan_rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/scan_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const ScanRows<float>* ScanRowsF32() { return &kScanRows<float>; }
const ScanRows<double>* ScanRowsF64() { return &kScanRows<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(ScanRowsF32);
HWY_EXPORT(ScanRowsF64);

template <>
const ScanRows<float>& scan_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(ScanRowsF32)();
}
template <>
const ScanRows<double>& scan_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(ScanRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
