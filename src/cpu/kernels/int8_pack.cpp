// Dispatches int8 packing to the best SIMD target.
#include "cpu/kernels/int8_pack.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/int8_pack.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/int8_pack-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(MakeInt8Pack);

const Int8Pack& int8_pack() { return HWY_DYNAMIC_DISPATCH(MakeInt8Pack)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
