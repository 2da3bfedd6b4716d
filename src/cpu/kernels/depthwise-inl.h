// Convolution of groups of few channels: a tile of pixels of one vector of channels is held in
// registers.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_DEPTHWISE_INL_H_
#undef ASHLAR_CPU_DEPTHWISE_INL_H_
#else
#define ASHLAR_CPU_DEPTHWISE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Registers: one per pixel of a tile, one per tap (up to 7) and one for the source. Sums of filters
// take what is left beside the tile and the source: several sums per tap, so that none waits for
// the one before.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kTilePixels = 14, kFilterSums = 14;
#else
inline constexpr int kTilePixels = 7, kFilterSums = 7;
#endif

// The source vectors of one part of the groups. kGrouped: every lane takes the channel of that part
// in its own group.
template <bool kGrouped, class D>
struct PartLoader {
  using V = hn::Vec<D>;
  using T = hn::TFromD<D>;
  D d;
  decltype(hn::IndicesFromVec(D(), hn::Vec<hn::RebindToSigned<D>>())) lanes_of_part;

  PartLoader(D tag, std::int64_t part, std::int64_t parts) : d(tag) {
    if constexpr (kGrouped) {
      HWY_ALIGN hn::TFromD<hn::RebindToSigned<D>> lanes[HWY_MAX_BYTES / sizeof(T)];
      for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
        const auto l = static_cast<std::int64_t>(lane);
        lanes[lane] = static_cast<hn::TFromD<hn::RebindToSigned<D>>>(l - l % parts + part);
      }
      lanes_of_part = hn::SetTableIndices(d, lanes);
    }
  }
  HWY_INLINE V operator()(const T* HWY_RESTRICT p) const {
    if constexpr (kGrouped) return hn::TableLookupLanes(hn::LoadU(d, p), lanes_of_part);
    return hn::LoadU(d, p);
  }
};

// A tile of pixels: where its source starts and how much of it is there.
template <int kTaps, int kScale>
struct TilePlace {
  std::int64_t pixel, count, start;  // first pixel, pixels, source column of the first
  std::uint64_t valid = 0;           // bit j: source column start + j exists (kTaps > 0)
  bool inside;                       // a whole tile that meets no border

  template <class T>
  TilePlace(const DepthwiseSource<T>& a, std::int64_t first, std::int64_t length)
      : pixel(first), count(length), start(first * a.scale + a.shift) {
    const std::int64_t reach = (kTilePixels - 1) * a.scale + (a.taps - 1) * a.gap;
    inside = count == kTilePixels && start >= 0 && start + reach < a.columns;
    if constexpr (kTaps > 0)
      for (std::int64_t j = 0; j <= reach; ++j)
        valid |= std::uint64_t{start + j >= 0 && start + j < a.columns} << j;
  }
  template <class T>
  HWY_INLINE bool exists(const DepthwiseSource<T>& a, int q, std::int64_t tap) const {
    const std::int64_t column = start + q * a.scale + tap * a.gap;
    return q < count && column >= 0 && column < a.columns;
  }
};

// Calls body(place) for the tiles of a line.
template <int kTaps, int kScale, class T, class Body>
HWY_INLINE void ForTiles(const DepthwiseSource<T>& a, Body body) {
  for (std::int64_t pixel = a.first; pixel < a.last; pixel += kTilePixels)
    body(TilePlace<kTaps, kScale>(a, pixel, std::min<std::int64_t>(a.last - pixel, kTilePixels)));
}

// Adds to `sums` what one source line gives. Taps known beforehand, one column apart: each source
// vector is loaded once and used by every pixel it reaches.
template <int kTaps, int kScale, bool kChecked, class D, class Load, class V = hn::Vec<D>,
          class T = hn::TFromD<D>>
HWY_INLINE void AddLine(D d, const Load& load, const DepthwiseSource<T>& a,
                        const TilePlace<kTaps, kScale>& place, const T* HWY_RESTRICT source,
                        const T* HWY_RESTRICT weights, V (&sums)[kTilePixels]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kTaps == 0) {
    for (std::int64_t s = 0; s < a.taps; ++s) {
      const V w = hn::LoadU(d, weights + s * lanes);
      const T* HWY_RESTRICT first = source + s * a.gap * a.pixel;
#pragma GCC unroll 16
      for (int q = 0; q < kTilePixels; ++q) {
        if (kChecked && !place.exists(a, q, s)) continue;
        sums[q] = hn::MulAdd(load(first + q * a.scale * a.pixel), w, sums[q]);
      }
    }
  } else {
    V w[kTaps];
#pragma GCC unroll 16
    for (int s = 0; s < kTaps; ++s) w[s] = hn::LoadU(d, weights + s * lanes);
#pragma GCC unroll 64
    for (int j = 0; j < (kTilePixels - 1) * kScale + kTaps; ++j) {
      if (kChecked && (place.valid >> j & 1) == 0) continue;
      const V x = load(source + j * a.pixel);
#pragma GCC unroll 16
      for (int s = 0; s < kTaps; ++s) {
        if (j < s || (j - s) % kScale != 0 || (j - s) / kScale >= kTilePixels) continue;
        sums[(j - s) / kScale] = hn::MulAdd(x, w[s], sums[(j - s) / kScale]);
      }
    }
  }
}

template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void Finish(D d, const DepthwiseLines<T>& a, std::int64_t line, std::int64_t pixel,
                       std::int64_t count, std::int64_t channel, V (&sums)[kTilePixels]) {
  const V factor = hn::LoadU(d, a.finish.factor + channel);
  const V offset = hn::LoadU(d, a.finish.offset + channel);
#pragma GCC unroll 16
  for (int q = 0; q < kTilePixels; ++q) sums[q] = hn::MulAdd(sums[q], factor, offset);
  if (a.residuals != nullptr) {
    const T* residual = a.residuals[line] + pixel * a.result_pixel + channel;
#pragma GCC unroll 16
    for (int q = 0; q < kTilePixels; ++q) {
      if (q >= count) break;
      sums[q] = hn::Add(sums[q], hn::LoadU(d, residual + q * a.result_pixel));
    }
  }
  const V low = hn::Set(d, a.finish.low), high = hn::Set(d, a.finish.high);
#pragma GCC unroll 16
  for (int q = 0; q < kTilePixels; ++q)
    sums[q] = hn::IfThenElse(hn::Lt(sums[q], low), low,
                             hn::IfThenElse(hn::Gt(sums[q], high), high, sums[q]));  // NaN stays
}

// What later tiles at this place will read and write, on its way into L2.
template <class T>
HWY_INLINE void FetchAhead(const DepthwiseLines<T>& a, std::int64_t line, std::int64_t pixel,
                           std::int64_t channel, const T* result) {
  if (a.ahead != nullptr && a.ahead[line] != nullptr) {
    const T* ahead = a.ahead[line] + pixel * a.source.pixel + channel;
#pragma GCC unroll 16
    for (int q = 0; q < kTilePixels; ++q) __builtin_prefetch(ahead + q * a.source.pixel, 0, 2);
  }
  if (a.result_ahead == 0) return;
#pragma GCC unroll 16
  for (int q = 0; q < kTilePixels; ++q)
    __builtin_prefetch(result + a.result_ahead + q * a.result_pixel, 1, 2);
}

template <bool kChecked, int kTaps, int kScale, bool kGrouped, class T>
HWY_INLINE void PixelTile(const DepthwiseLines<T>& a, const TilePlace<kTaps, kScale>& place,
                          std::int64_t line, std::int64_t channel, const T* weights) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DepthwiseSource<T>& from = a.source;
  V sums[kTilePixels];
#pragma GCC unroll 16
  for (int q = 0; q < kTilePixels; ++q) sums[q] = hn::Zero(d);
  const std::int64_t parts = kGrouped ? from.parts : 1;
  for (std::int64_t part = 0; part < parts; ++part) {
    const PartLoader<kGrouped, decltype(d)> load(d, part, parts);
    for (std::int64_t t = 0; t < from.terms; ++t) {
      const T* source = from.sources[line * from.terms + t];
      if (source == nullptr) continue;
      AddLine<kTaps, kScale, kChecked>(d, load, from, place,
                                       source + place.start * from.pixel + channel,
                                       weights + (t * parts + part) * from.taps * lanes, sums);
    }
  }
  if (a.finish.factor != nullptr) Finish(d, a, line, place.pixel, place.count, channel, sums);
  T* result = a.results[line] + place.pixel * a.result_pixel + channel;
  FetchAhead(a, line, place.pixel, channel, result);
#pragma GCC unroll 16
  for (int q = 0; q < kTilePixels; ++q) {
    if (kChecked && q >= place.count) break;
    if (a.stream)
      hn::Stream(sums[q], d, result + q * a.result_pixel);
    else
      hn::StoreU(sums[q], d, result + q * a.result_pixel);
  }
}

template <int kTaps, int kScale, bool kGrouped, class T>
HWY_NOINLINE void PixelTiles(const DepthwiseLines<T>& a) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const DepthwiseSource<T>& from = a.source;
  ForTiles<kTaps, kScale>(from, [&](const TilePlace<kTaps, kScale>& place) HWY_ATTR {
    const T* weights = a.weights;
    for (std::int64_t v = 0; v * lanes < from.channels; ++v) {
      const std::int64_t channel = vector_start(v, lanes, from.channels);
      for (std::int64_t line = 0; line < from.lines; ++line)
        if (place.inside)
          PixelTile<false, kTaps, kScale, kGrouped>(a, place, line, channel, weights);
        else
          PixelTile<true, kTaps, kScale, kGrouped>(a, place, line, channel, weights);
      weights += from.terms * from.parts * from.taps * lanes;
    }
  });
  if (a.stream) hwy::FlushStream();
}

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

// Taps and scale that have code of their own: run(taps, scale) with constants, or with zeros.
template <class T, class Run>
HWY_INLINE void WithTaps(const DepthwiseSource<T>& a, Run run) {
  if (a.gap == 1 && a.scale == 1 && a.taps == 3) return run(Constant<3>(), Constant<1>());
  if (a.gap == 1 && a.scale == 1 && a.taps == 5) return run(Constant<5>(), Constant<1>());
  if (a.gap == 1 && a.scale == 1 && a.taps == 7) return run(Constant<7>(), Constant<1>());
  if (a.gap == 1 && a.scale == 2 && a.taps == 3) return run(Constant<3>(), Constant<2>());
  run(Constant<0>(), Constant<1>());
}

template <class T>
void RunDepthwiseLines(const DepthwiseLines<T>& a) {
  WithTaps(a.source, [&](auto taps, auto scale) HWY_ATTR {
    constexpr int kTaps = decltype(taps)::value, kScale = decltype(scale)::value;
    if (a.source.parts > 1)
      return PixelTiles < kTaps == 3 ? 3 : 0, kTaps == 3 ? kScale : 1, true > (a);
    PixelTiles<kTaps, kScale, false>(a);
  });
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
