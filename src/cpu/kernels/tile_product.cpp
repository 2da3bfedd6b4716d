#include "cpu/kernels/tile_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/tile_product.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

TileProduct<float> ProductF32() { return &Product<float>; }
TileProduct<double> ProductF64() { return &Product<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(ProductF32);
HWY_EXPORT(ProductF64);

template <>
TileProduct<float> tile_product<float>() {
  return HWY_DYNAMIC_DISPATCH(ProductF32)();
}
template <>
TileProduct<double> tile_product<double>() {
  return HWY_DYNAMIC_DISPATCH(ProductF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
