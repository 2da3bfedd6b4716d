// Compiled once per SIMD target; see panel_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/kernels/panel_product.hpp"
#include "cpu/kernels/x86_instructions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Six rows by four vectors ask for 10 loads per 24 multiply-adds. Accumulators take 24 of 32
// registers (12 of 16 with two vectors), B's row 4 or 2, A's element one.
inline constexpr int kPanelRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPanelVectors = 4;
#else
inline constexpr int kPanelVectors = 2;
#endif

template <int kRows, int kVectors, class V>
struct PanelSums {
  V at[kRows][kVectors];
};

// Where the rows of A are. Rows that lie apart have two pointers and a distance: addresses of six.
template <int kRows, bool kPacked, class T>
struct RowPointers {
  static constexpr int kHalf = (kRows + 1) / 2;
  const T *low, *high;
  std::int64_t distance;

  HWY_INLINE T row(int i) const {
    if constexpr (kPacked) return low[i];
    return i < kHalf ? low[i * distance] : high[(i - kHalf) * distance];
  }
};

// One step of the depth: then A is `a_step` elements further and B a row.
template <int kRows, int kVectors, bool kPacked, class T, class V>
HWY_INLINE void AddStep(RowPointers<kRows, kPacked, T>& a, std::int64_t a_step, const T*& b,
                        std::int64_t b_row, PanelSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V right[kVectors];
  // Few rows wait for B, which comes from afar.
  if constexpr (kRows <= 4) {
    constexpr std::int64_t kAhead = 32;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hwy::Prefetch(b + (kAhead * kVectors + v) * lanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const V left = hn::Set(d, a.row(i));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.at[i][v] = hn::MulAdd(left, right[v], sums.at[i][v]);
  }
  a.low += a_step, a.high += a_step, b += b_row;
  if constexpr (kPacked) KeepInRegister(a.low);
  KeepInRegister(b);
}

// What is fetched while sums are made, a little with every turn of the loop: all at once would take
// every place there is for lines on their way, and A and B would wait.
template <int kRows, int kVectors, class T>
class Fetches {
 public:
  explicit Fetches(const PanelOperands<T>& o) : c_(o.c), c_row_(o.c_row), ahead_(o.ahead) {}
  HWY_INLINE void some() {
    if (lines_ < kRows * kVectors) {
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
      __builtin_prefetch(c_, 1, 3);
      c_ += lanes;
      if (++lines_ % kVectors == 0) c_ += c_row_ - kVectors * lanes;
    }
    if (ahead_.left <= 0) return;
    ahead_.left -= ahead_.repeats;
    for (std::int64_t i = 0; i < ahead_.repeats; ++i, ahead_.at += ahead_.advance)
#pragma GCC unroll 4
      for (int s = 0; s < PanelAhead<T>::kStreams; ++s)
        hwy::Prefetch(ahead_.at + s * ahead_.distance);
  }

 private:
  const T* c_;
  std::int64_t c_row_;
  int lines_ = 0;
  PanelAhead<T> ahead_;
};

// Steps are `a_step` elements of A and `b_row` of B apart; four of them per turn of the loop.
// Packed rows come from L2 in order, and are asked for four lines ahead.
template <int kRows, int kVectors, bool kPacked, class T, class V>
HWY_INLINE void AddSteps(std::int64_t depth, const T* first, std::int64_t a_row,
                         std::int64_t a_step, const T* b, std::int64_t b_row,
                         Fetches<kRows, kVectors, T>& fetches,
                         PanelSums<kRows, kVectors, V>& sums) {
  constexpr auto kAhead = static_cast<std::int64_t>(384 / sizeof(T));
  using Pointers = RowPointers<kRows, kPacked, T>;
  Pointers a{first, first + Pointers::kHalf * a_row, a_row};
  for (std::int64_t turns = depth / 4; turns > 0; --turns) {
    fetches.some();
    if constexpr (kPacked) hwy::Prefetch(a.low + kAhead);
    KeepInRegister(a.low);
    if constexpr (!kPacked) KeepInRegister(a.high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) AddStep<kRows, kVectors>(a, a_step, b, b_row, sums);
  }
  for (std::int64_t rest = depth % 4; rest > 0; --rest)
    AddStep<kRows, kVectors>(a, a_step, b, b_row, sums);
}

// C's columns are whole vectors.
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void StoreWhole(const PanelOperands<T>& o, PanelSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto change = [&](const auto& step) HWY_ATTR {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums.at[i][v] = step(sums.at[i][v], i, v * lanes);
  };
  if (o.accumulate)
    change([&](V sum, std::int64_t i, std::int64_t j)
               HWY_ATTR { return hn::Add(sum, hn::LoadU(d, o.c + i * o.c_row + j)); });
  if (o.finish != nullptr) {
    const PanelFinish<T>& finish = *o.finish;
    if (finish.bias != nullptr)
      change([&](V sum, std::int64_t, std::int64_t j)
                 HWY_ATTR { return hn::Add(sum, hn::LoadU(d, finish.bias + j)); });
    if (finish.addend != nullptr)
      change([&](V sum, std::int64_t i, std::int64_t j) HWY_ATTR {
        return hn::Add(sum, hn::LoadU(d, finish.addend + i * finish.addend_row + j));
      });
    // A NaN fails both comparisons and stays.
    const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
    change([&](V sum, std::int64_t, std::int64_t) HWY_ATTR {
      sum = hn::IfThenElse(hn::Lt(sum, low), low, sum);
      return hn::IfThenElse(hn::Gt(sum, high), high, sum);
    });
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums.at[i][v], d, o.c + i * o.c_row + v * lanes);
}

// C's last vector is cut: element by element, from a copy of the sums with rows of `width`.
template <class T>
HWY_NOINLINE void StorePart(const PanelOperands<T>& o, const T* sums, std::int64_t width) {
  for (std::int64_t i = 0; i < o.rows; ++i, sums += width) {
    T* c = o.c + i * o.c_row;
    for (std::int64_t j = 0; j < o.columns; ++j) {
      T sum = sums[j];
      if (o.accumulate) sum += c[j];
      if (o.finish != nullptr) {
        if (o.finish->bias != nullptr) sum += o.finish->bias[j];
        if (o.finish->addend != nullptr) sum += o.finish->addend[i * o.finish->addend_row + j];
        if (sum < o.finish->low) sum = o.finish->low;
        if (sum > o.finish->high) sum = o.finish->high;
      }
      c[j] = sum;
    }
  }
}

template <int kRows, int kVectors, bool kPacked, class T>
HWY_NOINLINE void MultiplyPanel(const PanelOperands<T>& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  PanelSums<kRows, kVectors, hn::Vec<decltype(d)>> sums;
  Fetches<kRows, kVectors, T> fetches(o);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.at[i][v] = hn::Zero(d);
  if constexpr (kPacked) {
    AddSteps<kRows, kVectors, true>(o.depth, o.a, 1, o.a_row != 0 ? o.a_row : kPanelRows, o.b,
                                    o.b_row, fetches, sums);
  } else {
    const T* b = o.b;
    for (std::int64_t s = 0; s < o.segments; ++s, b += o.depth * o.b_row) {
      const T* a = o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0);
      AddSteps<kRows, kVectors, false>(o.depth, a, o.a_row, 1, b, o.b_row, fetches, sums);
    }
  }
  if (o.columns == kVectors * lanes) return StoreWhole<kRows, kVectors>(o, sums);
  alignas(64) T copy[kRows * kVectors * hn::MaxLanes(d)];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(sums.at[i][v], d, copy + (i * kVectors + v) * lanes);
  StorePart(o, copy, kVectors * lanes);
}

// Calls the block of exactly o.rows rows, and of as few vectors as hold its columns.
template <int kRows, int kVectors, bool kPacked, class T>
void MultiplyRows(const PanelOperands<T>& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyRows<kRows, kVectors - 1, kPacked>(o);
  }
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyRows<kRows - 1, kVectors, kPacked>(o);
  }
  MultiplyPanel<kRows, kVectors, kPacked>(o);
}

template <bool kPacked, class T>
void Multiply(const PanelOperands<T>& o) {
  MultiplyRows<kPanelRows, kPanelVectors, kPacked>(o);
  if (o.finish == nullptr || o.finish->activation == nullptr) return;
  for (std::int64_t i = 0; i < o.rows; ++i) {
    T* row = o.c + i * o.c_row;
    o.finish->activate(*o.finish->activation, row, nullptr, nullptr, o.columns, row);
  }
}

template <class T>
const PanelProduct<T>& MakePanelProduct() {
  static const PanelProduct<T> product = {
      kPanelRows, kPanelVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      Multiply<false, T>, Multiply<true, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
