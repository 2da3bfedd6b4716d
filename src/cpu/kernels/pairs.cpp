#include "cpu/kernels/pairs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/pairs.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<hn::Rebind<float, D>>>
HWY_INLINE hn::Vec<D> Pair(D d, V low, V high) {
  return hn::Or(hn::And(hn::ConvertTo(d, low), hn::Set(d, 0xFFFF)),
                hn::ShiftLeft<16>(hn::ConvertTo(d, high)));
}

void Neighbours(const float* x, std::int64_t pairs, std::int32_t* destination) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    auto low = hn::Zero(df), high = hn::Zero(df);
    hn::LoadInterleaved2(df, x + 2 * i, low, high);
    hn::StoreU(Pair(d, low, high), d, destination + i);
  }
  for (; i < pairs; ++i) {
    const auto low = static_cast<std::uint32_t>(static_cast<std::int32_t>(x[2 * i]));
    const auto high = static_cast<std::uint32_t>(static_cast<std::int32_t>(x[2 * i + 1]));
    destination[i] = static_cast<std::int32_t>((low & 0xFFFFu) | high << 16);
  }
}

void Zip(const float* low, const float* high, std::int64_t pairs, std::int32_t* destination) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  TransformRow(
      df, d, pairs, destination, [&](auto l, auto h) HWY_ATTR { return Pair(d, l, h); }, low, high);
}

PairRows MakePairRows() { return {Neighbours, Zip}; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(MakePairRows);

const PairRows& pair_rows() {
  static const PairRows table = HWY_DYNAMIC_DISPATCH(MakePairRows)();
  return table;
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
