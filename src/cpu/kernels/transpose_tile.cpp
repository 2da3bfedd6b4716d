// Dispatches float transposes to the best SIMD target.
#include "cpu/kernels/transpose_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/transpose_tile.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/transpose_tile-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(MakeTranspose);

TransposeTile transpose_tile() { return HWY_DYNAMIC_DISPATCH(MakeTranspose)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
