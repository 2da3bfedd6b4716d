// Filter gradients of depthwise and small-group convolution: accumulators over pixels stay in
// registers.
#include "cpu/kernels/depthwise-inl.h"

#if defined(ASHLAR_CPU_DEPTHWISE_FILTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_DEPTHWISE_FILTER_INL_H_
#undef ASHLAR_CPU_DEPTHWISE_FILTER_INL_H_
#else
#define ASHLAR_CPU_DEPTHWISE_FILTER_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Edge of a tile: interior, padding, or a partial tile at the end of the line.
enum class Edge { none, border, partial };

// Compile-time taps: sums[copy][tap] over one line of the tile.
template <Edge kEdge, int kTaps, int kScale, int kPixels, int kCopies, class D, class Load,
          class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void AddProducts(D d, const Load& load, const DepthwiseSource<T>& a,
                            const TileSpan<kTaps, kScale, kPixels>& place,
                            const T* HWY_RESTRICT source, const T* HWY_RESTRICT gradient,
                            std::int64_t gradient_pixel, V (&sums)[kCopies][kTaps]) {
  V slopes[kPixels];
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q)
    slopes[q] = kEdge == Edge::partial && q >= place.count
                    ? hn::Zero(d)
                    : hn::LoadU(d, gradient + q * gradient_pixel);
#pragma GCC unroll 64
  for (int j = 0; j < (kPixels - 1) * kScale + kTaps; ++j) {
    if (kEdge != Edge::none && (place.valid >> j & 1) == 0) continue;
    const V x = load(source + j * a.pixel);
#pragma GCC unroll 16
    for (int s = 0; s < kTaps; ++s) {
      if (j < s || (j - s) % kScale != 0 || (j - s) / kScale >= kPixels) continue;
      // A zero gradient times NaN is NaN: skip.
      if (kEdge == Edge::partial && (j - s) / kScale >= place.count) continue;
      V& sum = sums[j / kScale % kCopies][s];
      sum = hn::MulAdd(x, slopes[(j - s) / kScale], sum);
    }
  }
}

// Prefetches the next vector of channels.
template <int kPixels, class T>
HWY_INLINE void PrefetchPixels(const T* first, std::int64_t pixel) {
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q) __builtin_prefetch(first + q * pixel, 0, 3);
}

// One source term of a tile over all lines: totals[tap] += sums.
template <Edge kEdge, int kTaps, int kScale, int kPixels, class D, class Load,
          class T = hn::TFromD<D>>
HWY_INLINE void FilterTerm(D d, const Load& load, const DepthwiseFilterLines<T>& a,
                           const TileSpan<kTaps, kScale, kPixels>& place, std::int64_t term,
                           std::int64_t channel, T* HWY_RESTRICT totals) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DepthwiseSource<T>& from = a.source;
  const auto for_lines = [&](auto body) HWY_ATTR {
    for (std::int64_t line = 0; line < from.lines; ++line) {
      const T* source = from.sources[line * from.terms + term];
      if (source == nullptr) continue;
      const T* gradient = a.gradients[line] + place.pixel * a.gradient_pixel + channel;
      source += place.start * from.pixel + channel;
      if (term == 0) PrefetchPixels<kPixels>(source + lanes, from.pixel);
      if (term == 1) PrefetchPixels<kPixels>(gradient + lanes, a.gradient_pixel);
      body(source, gradient);
    }
  };
  if constexpr (kTaps == 0) {
    for (std::int64_t s = 0; s < from.taps; ++s) {
      V even = hn::LoadU(d, totals + s * lanes), odd = hn::Zero(d);
      for_lines([&](const T* HWY_RESTRICT source, const T* HWY_RESTRICT gradient) HWY_ATTR {
        const T* HWY_RESTRICT first = source + s * from.gap * from.pixel;
#pragma GCC unroll 16
        for (int q = 0; q < kPixels; ++q) {
          if (kEdge != Edge::none && !place.exists(from, q, s)) continue;
          V& sum = q % 2 == 0 ? even : odd;
          sum = hn::MulAdd(load(first + q * from.scale * from.pixel),
                           hn::LoadU(d, gradient + q * a.gradient_pixel), sum);
        }
      });
      hn::StoreU(hn::Add(even, odd), d, totals + s * lanes);
    }
  } else {
    constexpr int kCopies = kFilterAccumulators / kTaps > 1 ? kFilterAccumulators / kTaps : 1;
    V sums[kCopies][kTaps];
#pragma GCC unroll 16
    for (int s = 0; s < kTaps; ++s) {
      sums[0][s] = hn::LoadU(d, totals + s * lanes);
#pragma GCC unroll 16
      for (int copy = 1; copy < kCopies; ++copy) sums[copy][s] = hn::Zero(d);
    }
    for_lines([&](const T* HWY_RESTRICT source, const T* HWY_RESTRICT gradient) HWY_ATTR {
      AddProducts<kEdge>(d, load, from, place, source, gradient, a.gradient_pixel, sums);
    });
#pragma GCC unroll 16
    for (int s = 0; s < kTaps; ++s) {
#pragma GCC unroll 16
      for (int copy = 1; copy < kCopies; ++copy) sums[0][s] = hn::Add(sums[0][s], sums[copy][s]);
      hn::StoreU(sums[0][s], d, totals + s * lanes);
    }
  }
}

template <Parts kParts, int kTaps, int kScale, class T>
HWY_NOINLINE void FilterTiles(const DepthwiseFilterLines<T>& a) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DepthwiseSource<T>& from = a.source;
  const PartLanes<hn::ScalableTag<T>> part_lanes(d, kParts == Parts::in_vector ? from.parts : 0);
  ForTiles<kTaps, kScale>(from, [&](const auto& place) HWY_ATTR {
    for (std::int64_t v = 0; v * lanes < from.channels; ++v) {
      const std::int64_t channel = vector_start(v, lanes, from.channels);
      for (std::int64_t term = 0; term < from.terms; ++term)
        ForParts<kParts>(d, from, part_lanes, [&](std::int64_t part, const auto& load) HWY_ATTR {
          T* totals = a.sums + ((v * from.terms + term) * from.parts + part) * from.taps * lanes;
          if (place.inside)
            FilterTerm<Edge::none>(d, load, a, place, term, channel, totals);
          else if (place.whole)
            FilterTerm<Edge::border>(d, load, a, place, term, channel, totals);
          else
            FilterTerm<Edge::partial>(d, load, a, place, term, channel, totals);
        });
    }
  });
}

template <class T>
void RunDepthwiseFilterLines(const DepthwiseFilterLines<T>& a) {
  WithTaps(a.source, [&](auto tag) HWY_ATTR {
    FilterTiles<decltype(tag)::parts, decltype(tag)::taps, decltype(tag)::scale>(a);
  });
}

template <class T>
DepthwiseKernel<T> MakeDepthwiseKernel() {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return {lanes, RunDepthwiseLines<T>, RunDepthwiseFilterLines<T>};
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
