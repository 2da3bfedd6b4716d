#include "cpu/kernels/philox.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/philox.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/philox-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(DrawKept);

void draw_kept(std::uint64_t key, std::uint64_t counter, std::int64_t counters, float probability,
               float* kept) {
  HWY_DYNAMIC_DISPATCH(DrawKept)(key, counter, counters, probability, kept);
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
