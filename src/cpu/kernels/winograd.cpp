// Dispatches the Winograd transforms to the best SIMD target.
#include "cpu/kernels/winograd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/winograd.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const WinogradKernel& WinogradOf(int outputs, int taps) {
  if (outputs == 4) return MakeWinogradKernel<4, 3>();
  if (outputs == 2) return MakeWinogradKernel<2, 3>();
  return taps == 4 ? MakeWinogradKernel<3, 4>() : MakeWinogradKernel<3, 2>();
}
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(WinogradOf);
const WinogradKernel& winograd_kernel(int outputs, int taps) {
  return HWY_DYNAMIC_DISPATCH(WinogradOf)(outputs, taps);
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
