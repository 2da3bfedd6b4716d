#include "cpu/kernels/quad_pack.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/quad_pack.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/quad_pack-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(MakeQuadPack);

const QuadPack& quad_pack() { return HWY_DYNAMIC_DISPATCH(MakeQuadPack)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
