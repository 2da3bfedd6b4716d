// Compiled once per SIMD target; see philox.cpp.
#if defined(ASHLAR_CPU_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#undef ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#else
#define ASHLAR_CPU_KERNELS_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include "base/philox.hpp"
#include "cpu/kernels/philox.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // has no product of neighbouring lanes

inline void DrawKept(std::uint64_t key, std::uint64_t counter, std::int64_t counters,
                     float probability, float* kept) {
  for (std::int64_t j = 0; j < counters; ++j)
    for (const std::uint32_t bits : philox4x32(counter + static_cast<std::uint64_t>(j), key))
      *kept++ = uniform_open(bits) < probability ? 1.0f : 0.0f;
}

#else

// Both halves of the products a * factor, lane by lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void MultiplyWide(D d, V a, V factor, V& high, V& low) {
  const hn::Repartition<std::uint64_t, D> wide;
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), factor);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// One counter per lane; the constants are those of base/philox.hpp.
inline void DrawKept(std::uint64_t key, std::uint64_t counter, std::int64_t counters,
                     float probability, float* kept) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RebindToSigned<decltype(d)> signed_tag;
  const hn::RebindToFloat<decltype(d)> real;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V factor0 = hn::Set(d, 0xD2511F53u), factor1 = hn::Set(d, 0xCD9E8D57u);
  const auto one = hn::Set(real, 1.0f), half = hn::Set(real, 0.5f), unit = hn::Set(real, 0x1p-23f),
             limit = hn::Set(real, probability);
  alignas(64) std::uint32_t low_words[HWY_MAX_BYTES / 4], high_words[HWY_MAX_BYTES / 4];
  for (std::int64_t first = 0; first < counters; first += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::uint64_t own = counter + static_cast<std::uint64_t>(first + lane);
      low_words[lane] = static_cast<std::uint32_t>(own);
      high_words[lane] = static_cast<std::uint32_t>(own >> 32);
    }
    V s0 = hn::Load(d, low_words), s1 = hn::Load(d, high_words), s2 = hn::Zero(d), s3 = hn::Zero(d);
    auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      V high0, low0, high1, low1;
      MultiplyWide(d, s0, factor0, high0, low0);
      MultiplyWide(d, s2, factor1, high1, low1);
      s0 = hn::Xor(hn::Xor(high1, s1), hn::Set(d, key0));
      s1 = low1;
      s2 = hn::Xor(hn::Xor(high0, s3), hn::Set(d, key1));
      s3 = low0;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const auto decide = [&](V bits) HWY_ATTR {
      const auto whole = hn::ConvertTo(real, hn::BitCast(signed_tag, hn::ShiftRight<9>(bits)));
      return hn::IfThenElseZero(hn::Lt(hn::Mul(hn::Add(whole, half), unit), limit), one);
    };
    hn::StoreInterleaved4(decide(s0), decide(s1), decide(s2), decide(s3), real, kept + 4 * first);
  }
}

#endif  // HWY_SCALAR

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
