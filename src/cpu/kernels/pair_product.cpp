#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/pair_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/pair_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const PanelProduct<std::int32_t>& PairProductI32() { return MakePairProduct(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(PairProductI32);

template <>
const PanelProduct<std::int32_t>& panel_product<std::int32_t>() {
  return HWY_DYNAMIC_DISPATCH(PairProductI32)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
