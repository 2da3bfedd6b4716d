// Dispatches the non-GEMM steps of attention to the best SIMD target.
#include "cpu/kernels/attention_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/attention_tile.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
const AttentionTileOps<float>* AttentionTileF32() { return &kAttentionTileOps<float>; }
const AttentionTileOps<double>* AttentionTileF64() { return &kAttentionTileOps<double>; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(AttentionTileF32);
HWY_EXPORT(AttentionTileF64);

template <>
const AttentionTileOps<float>& attention_tile_ops<float>() {
  return *HWY_DYNAMIC_DISPATCH(AttentionTileF32)();
}
template <>
const AttentionTileOps<double>& attention_tile_ops<double>() {
  return *HWY_DYNAMIC_DISPATCH(AttentionTileF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
