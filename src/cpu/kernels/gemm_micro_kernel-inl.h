// The GEMM micro-kernel: MR x NR register tile, K loop, epilogue. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_GEMM_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_GEMM_MICRO_KERNEL_INL_H_
#undef ASHLAR_CPU_KERNELS_GEMM_MICRO_KERNEL_INL_H_
#else
#define ASHLAR_CPU_KERNELS_GEMM_MICRO_KERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "cpu/kernels/x86_instructions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// MR = 6 by NR = 4 vectors: 10 loads per 24 FMAs. Accumulators use 24 of 32 registers (12 of 16
// with two vectors), a row of B 4 or 2, the broadcast of A one.
inline constexpr int kPanelRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPanelVectors = 4;
#else
inline constexpr int kPanelVectors = 2;
#endif

template <int kRows, int kVectors, class V>
struct GemmAccumulators {
  V at[kRows][kVectors];
};

// Row pointers of A. Strided rows use two base pointers and a stride, which addresses six rows.
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

// One step of K; then A advances by `a_step` elements and B by a row.
template <int kRows, int kVectors, bool kPacked, class T, class V>
HWY_INLINE void AddStep(RowPointers<kRows, kPacked, T>& a, std::int64_t a_step, const T*& b,
                        std::int64_t b_row, GemmAccumulators<kRows, kVectors, V>& acc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V right[kVectors];
  // With few rows, latency of B from L2 or beyond dominates: prefetch.
  if constexpr (kRows <= 4) {
    constexpr std::int64_t kPrefetchDistance = 32;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hwy::Prefetch(b + (kPrefetchDistance * kVectors + v) * lanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const V left = hn::Set(d, a.row(i));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc.at[i][v] = hn::MulAdd(left, right[v], acc.at[i][v]);
  }
  a.low += a_step, a.high += a_step, b += b_row;
  if constexpr (kPacked) KeepInRegister(a.low);
  KeepInRegister(b);
}

// Software prefetch during the K loop, a little per iteration: issued all at once, it would fill
// the line-fill buffers and stall the loads of A and B.
template <int kRows, int kVectors, class T>
class Prefetcher {
 public:
  explicit Prefetcher(const GemmMicroArgs<T>& o)
      : c_(o.c), c_row_(o.c_row), prefetch_(o.prefetch) {}
  HWY_INLINE void some() {
    if (lines_ < kRows * kVectors) {
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
      __builtin_prefetch(c_, 1, 3);
      c_ += lanes;
      if (++lines_ % kVectors == 0) c_ += c_row_ - kVectors * lanes;
    }
    if (prefetch_.left <= 0) return;
    prefetch_.left -= prefetch_.repeats;
    for (std::int64_t i = 0; i < prefetch_.repeats; ++i, prefetch_.at += prefetch_.advance)
#pragma GCC unroll 4
      for (int s = 0; s < PanelPrefetch<T>::kStreams; ++s)
        hwy::Prefetch(prefetch_.at + s * prefetch_.distance);
  }

 private:
  const T* c_;
  std::int64_t c_row_;
  int lines_ = 0;
  PanelPrefetch<T> prefetch_;
};

// The K loop, unrolled by four; A advances by `a_step` and B by `b_row` per step. Packed A streams
// from L2 and is prefetched four lines ahead.
template <int kRows, int kVectors, bool kPacked, class T, class V>
HWY_INLINE void AddSteps(std::int64_t k, const T* first, std::int64_t a_row, std::int64_t a_step,
                         const T* b, std::int64_t b_row, Prefetcher<kRows, kVectors, T>& prefetcher,
                         GemmAccumulators<kRows, kVectors, V>& acc) {
  constexpr auto kPrefetchDistance = static_cast<std::int64_t>(384 / sizeof(T));
  using Pointers = RowPointers<kRows, kPacked, T>;
  Pointers a{first, first + Pointers::kHalf * a_row, a_row};
  for (std::int64_t turns = k / 4; turns > 0; --turns) {
    prefetcher.some();
    if constexpr (kPacked) hwy::Prefetch(a.low + kPrefetchDistance);
    KeepInRegister(a.low);
    if constexpr (!kPacked) KeepInRegister(a.high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) AddStep<kRows, kVectors>(a, a_step, b, b_row, acc);
  }
  for (std::int64_t rest = k % 4; rest > 0; --rest)
    AddStep<kRows, kVectors>(a, a_step, b, b_row, acc);
}

// Epilogue for whole vectors of C.
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void StoreWhole(const GemmMicroArgs<T>& o, GemmAccumulators<kRows, kVectors, V>& acc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto change = [&](const auto& step) HWY_ATTR {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc.at[i][v] = step(acc.at[i][v], i, v * lanes);
  };
  if (o.accumulate)
    change([&](V sum, std::int64_t i, std::int64_t j)
               HWY_ATTR { return hn::Add(sum, hn::LoadU(d, o.c + i * o.c_row + j)); });
  if (o.post_ops != nullptr) {
    const GemmPostOps<T>& post_ops = *o.post_ops;
    if (post_ops.bias != nullptr)
      change([&](V sum, std::int64_t, std::int64_t j)
                 HWY_ATTR { return hn::Add(sum, hn::LoadU(d, post_ops.bias + j)); });
    if (post_ops.addend != nullptr)
      change([&](V sum, std::int64_t i, std::int64_t j) HWY_ATTR {
        return hn::Add(sum, hn::LoadU(d, post_ops.addend + i * post_ops.addend_row + j));
      });
    // NaN fails both comparisons and propagates.
    const V low = hn::Set(d, post_ops.low), high = hn::Set(d, post_ops.high);
    change([&](V sum, std::int64_t, std::int64_t) HWY_ATTR {
      sum = hn::IfThenElse(hn::Lt(sum, low), low, sum);
      return hn::IfThenElse(hn::Gt(sum, high), high, sum);
    });
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(acc.at[i][v], d, o.c + i * o.c_row + v * lanes);
}

// Epilogue for a partial last vector of C: scalar, from a copy of the accumulators with row stride
// `width`.
template <class T>
HWY_NOINLINE void StorePart(const GemmMicroArgs<T>& o, const T* acc, std::int64_t width) {
  for (std::int64_t i = 0; i < o.rows; ++i, acc += width) {
    T* c = o.c + i * o.c_row;
    for (std::int64_t j = 0; j < o.columns; ++j) {
      T sum = acc[j];
      if (o.accumulate) sum += c[j];
      if (o.post_ops != nullptr) {
        if (o.post_ops->bias != nullptr) sum += o.post_ops->bias[j];
        if (o.post_ops->addend != nullptr)
          sum += o.post_ops->addend[i * o.post_ops->addend_row + j];
        if (sum < o.post_ops->low) sum = o.post_ops->low;
        if (sum > o.post_ops->high) sum = o.post_ops->high;
      }
      c[j] = sum;
    }
  }
}

template <int kRows, int kVectors, bool kPacked, class T>
HWY_NOINLINE void MultiplyTile(const GemmMicroArgs<T>& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  GemmAccumulators<kRows, kVectors, hn::Vec<decltype(d)>> acc;
  Prefetcher<kRows, kVectors, T> prefetcher(o);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc.at[i][v] = hn::Zero(d);
  if constexpr (kPacked) {
    AddSteps<kRows, kVectors, true>(o.k, o.a, 1, o.a_row != 0 ? o.a_row : kPanelRows, o.b, o.b_row,
                                    prefetcher, acc);
  } else {
    const T* b = o.b;
    for (std::int64_t s = 0; s < o.segments; ++s, b += o.k * o.b_row) {
      const T* a = o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0);
      AddSteps<kRows, kVectors, false>(o.k, a, o.a_row, 1, b, o.b_row, prefetcher, acc);
    }
  }
  if (o.columns == kVectors * lanes) return StoreWhole<kRows, kVectors>(o, acc);
  alignas(64) T copy[kRows * kVectors * hn::MaxLanes(d)];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(acc.at[i][v], d, copy + (i * kVectors + v) * lanes);
  StorePart(o, copy, kVectors * lanes);
}

// Dispatches to the tile of exactly o.rows rows and as few vectors as cover its columns.
template <int kRows, int kVectors, bool kPacked, class T>
void MultiplyRows(const GemmMicroArgs<T>& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyRows<kRows, kVectors - 1, kPacked>(o);
  }
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyRows<kRows - 1, kVectors, kPacked>(o);
  }
  MultiplyTile<kRows, kVectors, kPacked>(o);
}

template <bool kPacked, class T>
void Multiply(const GemmMicroArgs<T>& o) {
  MultiplyRows<kPanelRows, kPanelVectors, kPacked>(o);
  if (o.post_ops == nullptr || o.post_ops->activation == nullptr) return;
  for (std::int64_t i = 0; i < o.rows; ++i) {
    T* row = o.c + i * o.c_row;
    o.post_ops->activate(*o.post_ops->activation, row, nullptr, nullptr, o.columns, row);
  }
}

template <class T>
const GemmMicroKernel<T>& MakeGemmMicroKernel() {
  static const GemmMicroKernel<T> product = {
      kPanelRows, kPanelVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      Multiply<false, T>, Multiply<true, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
