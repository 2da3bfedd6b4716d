// Philox4x32 of consecutive counters. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#undef ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#else
#define ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "base/philox.hpp"
#include "cpu/kernels/philox.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Products of the low halves of 64-bit lanes.
template <class D>
HWY_INLINE hn::Vec<D> ProductOfLowHalves(D, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (HWY_TARGET == HWY_SCALAR) {  // cannot reinterpret a lane as two
    return hn::Mul(a, b);
  } else {
    const hn::Repartition<std::uint32_t, D> words;
    return hn::MulEven(hn::BitCast(words, a), hn::BitCast(words, b));
  }
}

// philox4x32 of consecutive counters, one per 64-bit lane; every 32-bit word of the state is in the
// low half of its lane. Writes the four words of a counter contiguously.
template <class D>
HWY_INLINE void PhiloxVector(D d, std::uint64_t counter, std::uint64_t key, std::uint32_t* bits) {
  using V = hn::Vec<D>;
  const V low = hn::Set(d, 0xFFFFFFFFu);
  const V multiplier0 = hn::Set(d, kPhiloxMultiplier0),
          multiplier1 = hn::Set(d, kPhiloxMultiplier1);
  const V counters = hn::Add(hn::Iota(d, 0), hn::Set(d, counter));
  V s0 = hn::And(counters, low), s1 = hn::ShiftRight<32>(counters), s2 = hn::Zero(d),
    s3 = hn::Zero(d);
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const V product0 = ProductOfLowHalves(d, multiplier0, s0);
    const V product1 = ProductOfLowHalves(d, multiplier1, s2);
    s0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), s1), hn::Set(d, key0));
    s2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), s3), hn::Set(d, key1));
    s1 = hn::And(product1, low);
    s3 = hn::And(product0, low);
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  // Little-endian: words 0 and 1 of a counter form one 64-bit value, words 2 and 3 the next.
  hn::StoreInterleaved2(hn::Or(s0, hn::ShiftLeft<32>(s1)), hn::Or(s2, hn::ShiftLeft<32>(s3)), d,
                        reinterpret_cast<std::uint64_t*>(bits));
}

inline void PhiloxRun(std::uint64_t seed, std::uint64_t offset, std::uint64_t first,
                      std::int64_t count, std::uint32_t* bits) {
  const hn::ScalableTag<std::uint64_t> d;
  const auto per_vector = static_cast<std::int64_t>(4 * hn::Lanes(d));
  alignas(64) std::uint32_t buffer[4 * hn::MaxLanes(d)] = {};
  // A run may begin or end inside a counter, so vectors go through a buffer.
  auto skip = static_cast<std::int64_t>(first % 4);
  std::uint64_t counter = offset + first / 4;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t length = std::min(per_vector - skip, count - done);
    PhiloxVector(d, counter, seed, buffer);
    std::copy_n(buffer + skip, length, bits + done);
    done += length;
    counter += hn::Lanes(d);
    skip = 0;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
