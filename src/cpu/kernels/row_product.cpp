#include "cpu/kernels/row_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/row_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/row_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const RowProduct<float>& RowProductF32() { return MakeRowProduct<float>(); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(RowProductF32);

template <>
const RowProduct<float>& row_product<float>() {
  return HWY_DYNAMIC_DISPATCH(RowProductF32)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
