// Non-GEMM steps of attention on tiles: online softmax, score gradients, dot products.
// Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_ATTENTION_TILE_INL_H_
#undef ASHLAR_CPU_KERNELS_ATTENTION_TILE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/kernels/attention_tile.hpp"
#include "cpu/kernels/exp-inl.h"
#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void ToPanels(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t panels,
              std::int64_t columns, T* destination) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t p = 0; p < panels; ++p)
    for (std::int64_t r = 0; r < rows; ++r, destination += columns)
      for (std::int64_t j = 0; j < columns; j += lanes)
        hn::StoreU(hn::LoadU(d, source + r * source_row + p * columns + j), d, destination + j);
}

template <class T>
bool Finite(const T* rows, std::int64_t row, std::int64_t count, std::int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // 0 * x is 0 for finite x and NaN otherwise.
  auto zeros = hn::Zero(d);
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t j = 0; j < columns; j += lanes)
      zeros = hn::MulAdd(hn::LoadU(d, rows + r * row + j), hn::Zero(d), zeros);
  return hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)));
}

// The first `count` elements, zeros after them. Highway's masked load needs aligned memory on
// targets without masks.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* x, std::int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, x);
#else
  alignas(64) T copy[hn::MaxLanes(d)] = {};
  std::memcpy(copy, x, static_cast<std::size_t>(count) * sizeof(T));
  return hn::Load(d, copy);
#endif
}

// Maximum of a row. Clears `finite` if a product is not finite.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T LargestOf(D d, const T* x, std::int64_t n, bool& finite) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // 0 * x is 0 for finite x and NaN otherwise.
  const auto lowest = hn::Set(d, std::numeric_limits<T>::lowest());
  auto most0 = lowest, most1 = lowest, zero0 = hn::Zero(d), zero1 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    most0 = hn::Max(most0, a), most1 = hn::Max(most1, b);
    zero0 = hn::MulAdd(a, hn::Zero(d), zero0), zero1 = hn::MulAdd(b, hn::Zero(d), zero1);
  }
  for (; i < n; i += lanes) {
    const std::int64_t left = HWY_MIN(lanes, n - i);
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(left));
    const auto a = LoadFirst(d, x + i, left);
    most0 = hn::Max(most0, hn::IfThenElse(rest, a, lowest));
    zero0 = hn::MulAdd(a, hn::Zero(d), zero0);
  }
  finite &= hn::AllTrue(d, hn::Eq(hn::Add(zero0, zero1), hn::Zero(d)));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(most0, most1)));
}

// x = exp(scale x - shift); returns the sum.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T Exponentials(D d, T* x, std::int64_t n, T scale_by, T shift_by) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, scale_by), shift = hn::Set(d, shift_by);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = SoftmaxExp(d, hn::MulSub(hn::LoadU(d, x + i), scale, shift));
    const auto b = SoftmaxExp(d, hn::MulSub(hn::LoadU(d, x + i + lanes), scale, shift));
    hn::StoreU(a, d, x + i);
    hn::StoreU(b, d, x + i + lanes);
    sum0 = hn::Add(sum0, a), sum1 = hn::Add(sum1, b);
  }
  for (; i < n; i += lanes) {
    const std::int64_t left = HWY_MIN(lanes, n - i);
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(left));
    const auto argument = hn::MulSub(LoadFirst(d, x + i, left), scale, shift);
    // Lanes past the end hold arbitrary values: the minimum avoids overflow.
    const auto a = hn::IfThenElseZero(rest, SoftmaxExp(d, hn::Min(argument, hn::Zero(d))));
    hn::BlendedStore(a, rest, d, x + i);
    sum0 = hn::Add(sum0, a);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

template <class T>
bool OnlineSoftmaxStep(const SoftmaxStep<T>& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T here[kMaxSoftmaxRows];
  bool finite = true;
  for (std::int64_t r = 0; r < o.rows; ++r) {
    here[r] = o.scale * LargestOf(d, o.products + r * o.product_row, o.count, finite);
    finite &= o.largest[r] == o.largest[r];
  }
  if (!finite) return false;
  // Where the maximum rises, rescales the accumulators by exp(before - here), for all rows at once.
  alignas(64) T factors[HWY_MAX(kMaxSoftmaxRows, static_cast<std::int64_t>(hn::MaxLanes(d)))] = {};
  bool rises = false;
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const T before = o.largest[r];
    if (here[r] <= before) continue;
    o.largest[r] = here[r];
    // Nothing accumulated before the first key: factor 1.
    if (before == -std::numeric_limits<T>::infinity()) continue;
    factors[r] = before - here[r];
    rises = true;
  }
  if (rises) {
    for (std::int64_t r = 0; r < o.rows; r += lanes)
      hn::StoreU(SoftmaxExp(d, hn::LoadU(d, factors + r)), d, factors + r);
    for (std::int64_t r = 0; r < o.rows; ++r) {
      if (factors[r] == T{1}) continue;
      o.sum[r] *= factors[r];
      T* output = o.output + r * o.output_row;
      for (std::int64_t j = 0; j < o.output_row; j += lanes)
        hn::StoreU(hn::Mul(hn::Set(d, factors[r]), hn::LoadU(d, output + j)), d, output + j);
    }
  }
  for (std::int64_t r = 0; r < o.rows; ++r)
    o.sum[r] += Exponentials(d, o.products + r * o.product_row, o.count, o.scale, o.largest[r]);
  return true;
}

// exp over the full range: overflows to infinity, propagates NaN.
template <class D, class V>
HWY_INLINE V WeightOf(D d, V x) {
  using T = hn::TFromD<D>;
  const V most =
      hn::Set(d, sizeof(T) == sizeof(float) ? static_cast<T>(88.0) : static_cast<T>(700.0));
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  V result = SoftmaxExp(d, hn::Min(x, most));
  result = hn::IfThenElse(hn::Gt(x, most), infinity, result);
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

template <bool kMasked, class T>
HWY_INLINE void GradientOf(const GradientPanel<T>& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, o.scale), one = hn::Set(d, T{1});
  for (std::int64_t i = 0; i < o.columns; i += lanes) {
    const auto stats = hn::LoadU(d, o.stats + i), delta = hn::LoadU(d, o.delta + i);
    auto first = hn::Zero(d), end = hn::Zero(d), key = hn::Set(d, o.key);
    if constexpr (kMasked) first = hn::LoadU(d, o.first_key + i), end = hn::LoadU(d, o.end_key + i);
    T* weights = o.weights + i;
    T* gradients = o.gradients + i;
    for (std::int64_t r = 0; r < o.rows; ++r, weights += o.columns, gradients += o.columns) {
      auto p = WeightOf(d, hn::MulSub(hn::LoadU(d, weights), scale, stats));
      auto ds = hn::Mul(p, hn::Sub(hn::LoadU(d, gradients), delta));
      if constexpr (kMasked) {
        const auto seen = hn::And(hn::Ge(key, first), hn::Lt(key, end));
        p = hn::IfThenElseZero(seen, p);
        ds = hn::IfThenElseZero(seen, ds);
        key = hn::Add(key, one);
      }
      hn::StoreU(p, d, weights);
      hn::StoreU(ds, d, gradients);
    }
  }
}

template <class T>
void GradientAny(const GradientPanel<T>& o) {
  if (o.first_key != nullptr) return GradientOf<true>(o);
  GradientOf<false>(o);
}

template <int kRows, int kKeys, class T>
HWY_INLINE void DotBlock(const KeyDots<T>& o, std::int64_t r, std::int64_t j) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V sums[kRows][kKeys];
#pragma GCC unroll 4
  for (int a = 0; a < kRows; ++a)
#pragma GCC unroll 4
    for (int b = 0; b < kKeys; ++b) sums[a][b] = hn::Zero(d);
  const T* q = o.queries + r * o.query_row;
  const T* k = o.keys + j * o.key_row;
  const std::int64_t whole = o.width / lanes * lanes;
  const auto add = [&](auto load, std::int64_t l) HWY_ATTR {
    V keys[kKeys];
#pragma GCC unroll 4
    for (int b = 0; b < kKeys; ++b) keys[b] = load(k + b * o.key_row + l);
#pragma GCC unroll 4
    for (int a = 0; a < kRows; ++a) {
      const V query = load(q + a * o.query_row + l);
#pragma GCC unroll 4
      for (int b = 0; b < kKeys; ++b) sums[a][b] = hn::MulAdd(query, keys[b], sums[a][b]);
    }
  };
  for (std::int64_t l = 0; l < whole; l += lanes)
    add([&](const T* p) HWY_ATTR { return hn::LoadU(d, p); }, l);
  if (whole < o.width)
    add([&](const T* p) HWY_ATTR { return LoadFirst(d, p, o.width - whole); }, whole);
#pragma GCC unroll 4
  for (int a = 0; a < kRows; ++a)
#pragma GCC unroll 4
    for (int b = 0; b < kKeys; ++b)
      o.products[(r + a) * o.product_row + j + b] = hn::GetLane(hn::SumOfLanes(d, sums[a][b]));
}

template <int kKeys, class T>
HWY_INLINE void DotColumn(const KeyDots<T>& o, std::int64_t j) {
  std::int64_t r = 0;
  for (; r + 2 <= o.rows; r += 2) DotBlock<2, kKeys>(o, r, j);
  if (r < o.rows) DotBlock<1, kKeys>(o, r, j);
}

template <class T>
void Dots(const KeyDots<T>& o) {
  std::int64_t j = 0;
  for (; j + 4 <= o.count; j += 4) DotColumn<4>(o, j);
  for (; j < o.count; ++j) DotColumn<1>(o, j);
}

template <class T>
constexpr AttentionTileOps<T> kAttentionTileOps = {&ToPanels<T>, &Finite<T>, &OnlineSoftmaxStep<T>,
                                                   &GradientAny<T>, &Dots<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
