// Scans of rows in vectors: log2(lanes) shifted combinations, then the carry of the lanes before.
// Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_SCAN_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_SCAN_ROWS_INL_H_
#undef ASHLAR_CPU_KERNELS_SCAN_ROWS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_SCAN_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/row_ops-inl.h"
#include "cpu/kernels/scan_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Fold kFold, bool kReverse, class T>
T ScanAlong(const T* x, T start, std::int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<decltype(d)> di;
  using Lane = hn::TFromD<decltype(di)>;
  const auto own_lane = hn::Iota(di, 0);
  const auto last_lane = hn::IndicesFromVec(d, hn::Set(di, static_cast<Lane>(lanes - 1)));
  const auto neutral = hn::Set(d, Neutral<kFold, T>());
  const auto first = hn::Set(d, start);
  auto carry = neutral;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const std::int64_t at = kReverse ? n - i - lanes : i;
    auto v = hn::LoadU(d, x + at);
    if constexpr (kReverse) v = hn::Reverse(d, v);
    for (std::size_t step = 1; step < hn::Lanes(d); step *= 2) {
      const auto below = hn::Sub(own_lane, hn::Set(di, static_cast<Lane>(step)));
      const auto moved =
          hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Max(below, hn::Zero(di))));
      v = Combine<kFold>(d, hn::IfThenElse(hn::FirstN(d, step), neutral, moved), v);
    }
    v = Combine<kFold>(d, carry, v);
    carry = hn::TableLookupLanes(v, last_lane);
    v = Combine<kFold>(d, first, v);
    if constexpr (kReverse) v = hn::Reverse(d, v);
    hn::StoreU(v, d, y + at);
  }
  const One<T> one;
  auto fold = hn::Set(one, hn::GetLane(carry));
  for (; i < n; ++i) {
    const std::int64_t at = kReverse ? n - 1 - i : i;
    fold = Combine<kFold>(one, fold, hn::LoadU(one, x + at));
    hn::StoreU(Combine<kFold>(one, hn::Set(one, start), fold), one, y + at);
  }
  return hn::GetLane(fold);
}

template <class T>
T ScanAlongAny(Fold fold, bool reverse, const T* x, T start, std::int64_t n, T* y) {
  return WithFold<T>(fold, Premap::identity, [&]<Fold kFold, Premap kPremap>() HWY_ATTR {
    return reverse ? ScanAlong<kFold, true>(x, start, n, y)
                   : ScanAlong<kFold, false>(x, start, n, y);
  });
}

template <Fold kFold, bool kExclusive, class T>
void ScanAcross(const T* x, const T* base, std::int64_t n, T* folds, T* y) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto before = hn::LoadU(d, folds + i);
    const auto after = Combine<kFold>(d, before, hn::LoadU(d, x + i));
    hn::StoreU(after, d, folds + i);
    hn::StoreU(Combine<kFold>(d, hn::LoadU(d, base + i), kExclusive ? before : after), d, y + i);
  });
}

template <class T>
void ScanAcrossAny(Fold fold, bool exclusive, const T* x, const T* base, std::int64_t n, T* folds,
                   T* y) {
  WithFold<T>(fold, Premap::identity, [&]<Fold kFold, Premap kPremap>() HWY_ATTR {
    exclusive ? ScanAcross<kFold, true>(x, base, n, folds, y)
              : ScanAcross<kFold, false>(x, base, n, folds, y);
  });
}

template <class T>
constexpr ScanRows<T> kScanRows = {&ScanAlongAny<T>, &ScanAcrossAny<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
