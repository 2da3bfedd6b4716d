#include "cpu/kernels/panel_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/panel_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/panel_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const PanelProduct<float>& PanelProductF32() { return MakePanelProduct<float>(); }
const PanelProduct<double>& PanelProductF64() { return MakePanelProduct<double>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(PanelProductF32);
HWY_EXPORT(PanelProductF64);

template <>
const PanelProduct<float>& panel_product<float>() {
  return HWY_DYNAMIC_DISPATCH(PanelProductF32)();
}
template <>
const PanelProduct<double>& panel_product<double>() {
  return HWY_DYNAMIC_DISPATCH(PanelProductF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
