// Many random decisions at once.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// draw_kept may write this many elements past those asked for.
inline constexpr std::int64_t kPhiloxSlack = 4 * 64;

// kept[4 * j + lane] = 1 where uniform_open(lane of philox4x32(counter + j, key)) < probability,
// else 0, for j < counters: what bernoulli() of base/dropout.hpp decides.
void draw_kept(std::uint64_t key, std::uint64_t counter, std::int64_t counters, float probability,
               float* kept);

}  // namespace ashlar::cpu
