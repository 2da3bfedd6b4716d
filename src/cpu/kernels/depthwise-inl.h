// Depthwise and small-group convolution: a register tile holds pixels of one vector of channels.
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

// Registers: one per pixel of a tile, one per tap (up to 7), one for the source. Filter gradients
// use the rest for several accumulators per tap, to hide FMA latency.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kTilePixels = 14, kFilterAccumulators = 14;
#else
inline constexpr int kTilePixels = 7, kFilterAccumulators = 7;
#endif
inline constexpr int kShortTile = 7;

// Tiles over lines that share source rows: few pixels of several lines. These tiles follow memory
// order (vector by vector, pixel by pixel), which the hardware prefetchers track; with 32 registers
// all taps stay in registers.
inline constexpr int kSharedLines = 4, kSharedPixels = 2;

// Lane permutation that broadcasts part `part` of each group to the lanes of its result channels.
template <class D>
class PartLanes {
 public:
  using Indices = decltype(hn::IndicesFromVec(D(), hn::Vec<hn::RebindToSigned<D>>()));

  PartLanes(D d, std::int64_t parts) {
    const std::size_t lanes = hn::Lanes(d), group = static_cast<std::size_t>(parts);
    for (std::size_t part = 0; part < group; ++part)
      for (std::size_t lane = 0; lane < lanes; ++lane)
        table_[part * lanes + lane] = static_cast<Lane>(lane - lane % group + part);
  }
  HWY_INLINE Indices operator()(D d, std::int64_t part) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    return hn::IndicesFromVec(d, hn::LoadU(hn::RebindToSigned<D>(), table_ + part * lanes));
  }

 private:
  using Lane = hn::TFromD<hn::RebindToSigned<D>>;
  static constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(Lane);
  HWY_ALIGN Lane table_[kMaxLanes * kMaxLanes];  // the parts divide the lane count
};

// Access to the parts of a group: see DepthwiseSource.
enum class Parts { one, in_vector, copied };

// Calls body(part, load) for every part of the groups; `load` reads the source vector at a pointer.
template <Parts kParts, class D, class T, class Body>
HWY_INLINE void ForParts(D d, const DepthwiseSource<T>& a, const PartLanes<D>& lanes, Body body) {
  if constexpr (kParts == Parts::one) {
    body(std::int64_t{0}, [&](const T* HWY_RESTRICT p) HWY_ATTR { return hn::LoadU(d, p); });
  } else if constexpr (kParts == Parts::in_vector) {
    for (std::int64_t part = 0; part < a.parts; ++part) {
      const auto of_part = lanes(d, part);
      body(part, [&](const T* HWY_RESTRICT p)
                     HWY_ATTR { return hn::TableLookupLanes(hn::LoadU(d, p), of_part); });
    }
  } else {
    for (std::int64_t part = 0; part < a.parts; ++part) {
      const std::int64_t offset = part * a.part_offset;
      body(part, [&](const T* HWY_RESTRICT p) HWY_ATTR { return hn::LoadU(d, p + offset); });
    }
  }
}

// A tile of pixels: its first source column and the valid columns.
template <int kTaps, int kScale, int kPixels>
struct TileSpan {
  std::int64_t pixel, count, start;  // first pixel, pixel count, source column of the first
  std::uint64_t valid = 0;           // bit j: source column start + j is valid (kTaps > 0)
  bool whole, inside;                // full tile; full tile without padding

  template <class T>
  TileSpan(const DepthwiseSource<T>& a, std::int64_t first, std::int64_t length)
      : pixel(first), count(length), start(first * a.scale + a.shift) {
    const std::int64_t reach = (kPixels - 1) * a.scale + (a.taps - 1) * a.gap;
    whole = count == kPixels;
    inside = whole && start >= 0 && start + reach < a.columns;
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

// Calls body(place) for the tiles of a line. Remainders use a tile of half the width.
template <int kTaps, int kScale, class T, class Body>
HWY_INLINE void ForTiles(const DepthwiseSource<T>& a, Body body) {
  for (std::int64_t pixel = a.first; pixel < a.last; pixel += kTilePixels) {
    const std::int64_t count = std::min<std::int64_t>(a.last - pixel, kTilePixels);
    if (count <= kShortTile)
      body(TileSpan<kTaps, kScale, kShortTile>(a, pixel, count));
    else
      body(TileSpan<kTaps, kScale, kTilePixels>(a, pixel, count));
  }
}

// Accumulates one source line. With compile-time taps one column apart, each source vector is
// loaded once and used by every pixel it reaches.
template <bool kChecked, int kTaps, int kScale, int kPixels, class D, class Load,
          class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void AddLine(D d, const Load& load, const DepthwiseSource<T>& a,
                        const TileSpan<kTaps, kScale, kPixels>& place, const T* HWY_RESTRICT source,
                        const T* HWY_RESTRICT weights, V (&acc)[kPixels]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kTaps == 0) {
    for (std::int64_t s = 0; s < a.taps; ++s) {
      const V w = hn::LoadU(d, weights + s * lanes);
      const T* HWY_RESTRICT first = source + s * a.gap * a.pixel;
#pragma GCC unroll 16
      for (int q = 0; q < kPixels; ++q) {
        if (kChecked && !place.exists(a, q, s)) continue;
        acc[q] = hn::MulAdd(load(first + q * a.scale * a.pixel), w, acc[q]);
      }
    }
  } else {
    V w[kTaps];
#pragma GCC unroll 16
    for (int s = 0; s < kTaps; ++s) w[s] = hn::LoadU(d, weights + s * lanes);
#pragma GCC unroll 64
    for (int j = 0; j < (kPixels - 1) * kScale + kTaps; ++j) {
      if (kChecked && (place.valid >> j & 1) == 0) continue;
      const V x = load(source + j * a.pixel);
#pragma GCC unroll 16
      for (int s = 0; s < kTaps; ++s) {
        if (j < s || (j - s) % kScale != 0 || (j - s) / kScale >= kPixels) continue;
        acc[(j - s) / kScale] = hn::MulAdd(x, w[s], acc[(j - s) / kScale]);
      }
    }
  }
}

template <int kPixels, class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void ApplyPostOps(D d, const DepthwiseLines<T>& a, std::int64_t line, std::int64_t pixel,
                             std::int64_t count, std::int64_t channel, V (&acc)[kPixels]) {
  const V factor = hn::LoadU(d, a.post_ops.factor + channel);
  const V offset = hn::LoadU(d, a.post_ops.offset + channel);
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q) acc[q] = hn::MulAdd(acc[q], factor, offset);
  if (a.residuals != nullptr) {
    const T* residual = a.residuals[line] + pixel * a.result_pixel + channel;
#pragma GCC unroll 16
    for (int q = 0; q < kPixels; ++q) {
      if (q >= count) break;
      acc[q] = hn::Add(acc[q], hn::LoadU(d, residual + q * a.result_pixel));
    }
  }
  const V low = hn::Set(d, a.post_ops.low), high = hn::Set(d, a.post_ops.high);
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q)
    acc[q] = hn::IfThenElse(hn::Lt(acc[q], low), low,
                            // propagates NaN
                            hn::IfThenElse(hn::Gt(acc[q], high), high, acc[q]));
}

template <bool kChecked, int kPixels, class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void StorePixels(D d, bool stream, T* HWY_RESTRICT result, std::int64_t result_pixel,
                            std::int64_t count, const V (&acc)[kPixels]) {
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q) {
    if (kChecked && q >= count) break;
    if (stream)
      hn::Stream(acc[q], d, result + q * result_pixel);
    else
      hn::StoreU(acc[q], d, result + q * result_pixel);
  }
}

// Prefetches to L2 what later tiles at this position read and write. Prefetches follow memory
// order, as the hardware prefetchers do: if pixels are contiguous, the vectors of a tile divide its
// bytes among them.
template <int kPixels, class T>
HWY_INLINE void PrefetchNextBlock(const DepthwiseLines<T>& a, std::int64_t line, std::int64_t pixel,
                                  std::int64_t channel, const T* result) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (a.prefetch != nullptr && a.prefetch[line] != nullptr) {
    const T* prefetch = a.prefetch[line] + pixel * a.source.pixel + channel * kPixels;
#pragma GCC unroll 16
    for (int q = 0; q < kPixels; ++q) __builtin_prefetch(prefetch + q * lanes, 0, 2);
  }
  if (a.prefetch_results == 0) return;
  result += a.prefetch_results + channel * (kPixels - 1);
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q) __builtin_prefetch(result + q * lanes, 1, 2);
}

template <bool kChecked, Parts kParts, int kTaps, int kScale, int kPixels, class D,
          class T = hn::TFromD<D>>
HWY_INLINE void PixelTile(D d, const DepthwiseLines<T>& a,
                          const TileSpan<kTaps, kScale, kPixels>& place, const PartLanes<D>& lanes,
                          std::int64_t line, std::int64_t channel, const T* weights) {
  using V = hn::Vec<D>;
  const DepthwiseSource<T>& from = a.source;
  const std::int64_t taps = from.taps * static_cast<std::int64_t>(hn::Lanes(d));
  V acc[kPixels];
#pragma GCC unroll 16
  for (int q = 0; q < kPixels; ++q) acc[q] = hn::Zero(d);
  for (std::int64_t t = 0; t < from.terms; ++t) {
    const T* source = from.sources[line * from.terms + t];
    if (source == nullptr) continue;
    source += place.start * from.pixel + channel;
    ForParts<kParts>(d, from, lanes, [&](std::int64_t part, const auto& load) HWY_ATTR {
      AddLine<kChecked>(d, load, from, place, source, weights + (t * from.parts + part) * taps,
                        acc);
    });
  }
  if (a.post_ops.factor != nullptr)
    ApplyPostOps<kPixels>(d, a, line, place.pixel, place.count, channel, acc);
  T* result = a.results[line] + place.pixel * a.result_pixel + channel;
  PrefetchNextBlock<kPixels>(a, line, place.pixel, channel, result);
  StorePixels<kChecked>(d, a.stream, result, a.result_pixel, place.count, acc);
}

template <Parts kParts, int kTaps, int kScale, class T>
HWY_NOINLINE void PixelTiles(const DepthwiseLines<T>& a) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DepthwiseSource<T>& from = a.source;
  const PartLanes<hn::ScalableTag<T>> part_lanes(d, kParts == Parts::in_vector ? from.parts : 0);
  ForTiles<kTaps, kScale>(from, [&](const auto& place) HWY_ATTR {
    const T* weights = a.weights;
    for (std::int64_t v = 0; v * lanes < from.channels; ++v) {
      const std::int64_t channel = vector_start(v, lanes, from.channels);
      for (std::int64_t line = 0; line < from.lines; ++line)
        if (place.inside)
          PixelTile<false, kParts>(d, a, place, part_lanes, line, channel, weights);
        else
          PixelTile<true, kParts>(d, a, place, part_lanes, line, channel, weights);
      weights += from.terms * from.parts * from.taps * lanes;
    }
  });
  if (a.stream) hwy::FlushStream();
}

// `lines` lines from `first` on that share source rows.
template <int kTaps, int kScale, class T>
struct SharedLines {
  static constexpr int kRows = (kSharedLines - 1) * kScale + kTaps;

  SharedLines(const DepthwiseLines<T>& a, std::int64_t first_line)
      : first(first_line), lines(std::min<std::int64_t>(a.source.lines - first, kSharedLines)) {
    for (int r = 0; r < kRows; ++r) {
      // the first line that reads the row
      const int line = r < kTaps ? 0 : (r - kTaps) / kScale + 1;
      rows[r] =
          line < lines ? a.source.sources[(first + line) * kTaps + r - line * kScale] : nullptr;
    }
    for (std::int64_t l = 0; l < lines; ++l) results[l] = a.results[first + l];
  }

  std::int64_t first, lines;
  const T* rows[kRows];      // null: padding
  T* results[kSharedLines];  // at pixel 0
};

// Applies post-ops and stores the accumulators of a tile, [line][pixel].
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void PostOpsShared(D d, const DepthwiseLines<T>& a, std::int64_t line,
                                std::int64_t lines, std::int64_t pixel, std::int64_t count,
                                std::int64_t channel, const T* HWY_RESTRICT copy) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t l = 0; l < lines; ++l, copy += kSharedPixels * lanes) {
    hn::Vec<D> acc[kSharedPixels];
#pragma GCC unroll 4
    for (int q = 0; q < kSharedPixels; ++q) acc[q] = hn::LoadU(d, copy + q * lanes);
    ApplyPostOps<kSharedPixels>(d, a, line + l, pixel, count, channel, acc);
    StorePixels<true>(d, a.stream, a.results[line + l] + pixel * a.result_pixel + channel,
                      a.result_pixel, count, acc);
  }
}

// kChecked: the tile is partial or touches padding.
template <bool kChecked, int kTaps, int kScale, class D, class T = hn::TFromD<D>>
HWY_INLINE void SharedTile(D d, const DepthwiseLines<T>& a, const SharedLines<kTaps, kScale, T>& at,
                           const TileSpan<kTaps, kScale, kSharedPixels>& place,
                           std::int64_t channel, const T* HWY_RESTRICT weights) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t pixel = a.source.pixel, start = place.start * pixel + channel;
  V w[kTaps * kTaps], acc[kSharedLines][kSharedPixels];
#pragma GCC unroll 16
  for (int i = 0; i < kTaps * kTaps; ++i) w[i] = hn::LoadU(d, weights + i * lanes);
#pragma GCC unroll 8
  for (int l = 0; l < kSharedLines; ++l)
#pragma GCC unroll 4
    for (int q = 0; q < kSharedPixels; ++q) acc[l][q] = hn::Zero(d);
#pragma GCC unroll 16
  for (int r = 0; r < at.kRows; ++r) {
    if (at.rows[r] == nullptr) continue;
    const T* HWY_RESTRICT source = at.rows[r] + start;
#pragma GCC unroll 16
    for (int j = 0; j < (kSharedPixels - 1) * kScale + kTaps; ++j) {
      if (kChecked && (place.valid >> j & 1) == 0) continue;
      const V x = hn::LoadU(d, source + j * pixel);
#pragma GCC unroll 8
      for (int l = 0; l < kSharedLines; ++l) {
        const int t = r - l * kScale;
        if (t < 0 || t >= kTaps) continue;
#pragma GCC unroll 16
        for (int s = 0; s < kTaps; ++s) {
          const int q = (j - s) / kScale;
          if (j < s || (j - s) % kScale != 0 || q >= kSharedPixels) continue;
          acc[l][q] = hn::MulAdd(x, w[t * kTaps + s], acc[l][q]);
        }
      }
    }
  }
  const std::int64_t result_pixel = a.result_pixel, put = place.pixel * result_pixel + channel;
  if (a.post_ops.factor != nullptr) {
    HWY_ALIGN T copy[kSharedLines * kSharedPixels * hn::MaxLanes(d)];  // allows one loop over lines
#pragma GCC unroll 8
    for (int l = 0; l < kSharedLines; ++l)
#pragma GCC unroll 4
      for (int q = 0; q < kSharedPixels; ++q)
        hn::StoreU(acc[l][q], d, copy + (l * kSharedPixels + q) * lanes);
    return PostOpsShared(d, a, at.first, at.lines, place.pixel, place.count, channel, copy);
  }
  const bool stream = a.stream;
#pragma GCC unroll 8
  for (int l = 0; l < kSharedLines; ++l) {
    if (kChecked && l >= at.lines) break;
    T* result = at.results[l] + put;
    StorePixels<kChecked>(d, stream, result, result_pixel, place.count, acc[l]);
  }
}

template <int kTaps, int kScale, class T>
HWY_NOINLINE void SharedTiles(const DepthwiseLines<T>& a) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DepthwiseSource<T>& from = a.source;
  const bool fetches = a.prefetch != nullptr || a.prefetch_results != 0;
  for (std::int64_t line = 0; line < from.lines; line += kSharedLines) {
    const SharedLines<kTaps, kScale, T> at(a, line);
    for (std::int64_t pixel = from.first; pixel < from.last; pixel += kSharedPixels) {
      const TileSpan<kTaps, kScale, kSharedPixels> place(
          from, pixel, std::min<std::int64_t>(from.last - pixel, kSharedPixels));
      const bool inside = place.inside && at.lines == kSharedLines;
      const T* weights = a.weights;
      for (std::int64_t v = 0; v * lanes < from.channels; ++v, weights += kTaps * kTaps * lanes) {
        const std::int64_t channel = vector_start(v, lanes, from.channels);
        if (inside)
          SharedTile<false>(d, a, at, place, channel, weights);
        else
          SharedTile<true>(d, a, at, place, channel, weights);
        for (std::int64_t l = 0; fetches && l < at.lines; ++l)
          PrefetchNextBlock<kSharedPixels>(a, line + l, pixel, channel,
                                           at.results[l] + pixel * a.result_pixel + channel);
      }
    }
  }
  if (a.stream) hwy::FlushStream();
}

template <Parts kParts, int kTaps, int kScale>
struct TapsTag {
  static constexpr Parts parts = kParts;
  static constexpr int taps = kTaps, scale = kScale;
};

// Dispatches to specialised parts, taps and scale: run(tag); kTaps = 0 is the generic code.
template <class T, class Run>
HWY_INLINE void WithTaps(const DepthwiseSource<T>& a, Run run) {
  const auto is = [&](std::int64_t taps, std::int64_t scale) {
    return sizeof(T) == sizeof(float) && a.gap == 1 && a.taps == taps && a.scale == scale;
  };
  if (a.parts > 1 && a.part_offset != 0) return run(TapsTag<Parts::copied, 0, 1>());
  if (a.parts > 1) {
    if constexpr (sizeof(T) == sizeof(float))
      if (is(3, 1)) return run(TapsTag<Parts::in_vector, 3, 1>());
    return run(TapsTag<Parts::in_vector, 0, 1>());
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is(3, 1)) return run(TapsTag<Parts::one, 3, 1>());
    if (is(5, 1)) return run(TapsTag<Parts::one, 5, 1>());
    if (is(7, 1)) return run(TapsTag<Parts::one, 7, 1>());
    if (is(3, 2)) return run(TapsTag<Parts::one, 3, 2>());
    if (is(5, 2)) return run(TapsTag<Parts::one, 5, 2>());
  }
  run(TapsTag<Parts::one, 0, 1>());
}

template <class T>
void RunDepthwiseLines(const DepthwiseLines<T>& a) {
  const DepthwiseSource<T>& from = a.source;
  const auto shares = [&](std::int64_t taps, std::int64_t scale) {
    return from.parts == 1 && from.gap == 1 && from.taps == taps && from.terms == taps &&
           from.scale == scale && from.shared_step == scale;
  };
  if constexpr (sizeof(T) == sizeof(float)) {
    if (shares(3, 1)) return SharedTiles<3, 1>(a);
    if (shares(3, 2)) return SharedTiles<3, 2>(a);
  }
  WithTaps(a.source, [&](auto tag) HWY_ATTR {
    using Tag = decltype(tag);
    constexpr bool kRare = Tag::taps == 3 && Tag::scale == 2;  // without shared source rows
    PixelTiles<Tag::parts, kRare ? 0 : Tag::taps, kRare ? 1 : Tag::scale>(a);
  });
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
