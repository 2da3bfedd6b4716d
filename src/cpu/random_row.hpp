// Rows of random values: elements of a Philox stream, identical to those of every other engine.
#pragma once

#include <ashlar/ops/random.hpp>
#include <cstdint>

namespace ashlar::cpu {

struct RandomStream {
  std::uint64_t seed = 0, offset = 0;
};

// `count` values of the operation's distribution: elements first, first + stride, ...
template <class T>
void random_row(const Rng& op, const RandomStream& stream, std::int64_t first, std::int64_t stride,
                std::int64_t count, T* values);

extern template void random_row(const Rng&, const RandomStream&, std::int64_t, std::int64_t,
                                std::int64_t, float*);
extern template void random_row(const Rng&, const RandomStream&, std::int64_t, std::int64_t,
                                std::int64_t, double*);

}  // namespace ashlar::cpu
