// NCHW convolution along lines of pixels: a register tile holds a few vectors of a few lines.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

#if defined(ASHLAR_CPU_PLANE_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_PLANE_LINES_INL_H_
#undef ASHLAR_CPU_PLANE_LINES_INL_H_
#else
#define ASHLAR_CPU_PLANE_LINES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kPlaneVectors = 2;  // vectors per tile of a line
inline constexpr int kPlaneLines = 4;    // lines at a time: enough accumulators to hide FMA latency
// filter taps at a time, one accumulator per vector of the tile
inline constexpr int kPlaneTaps = 4;

template <int kLines, class T>
HWY_INLINE void PlaneTile(const PlaneSource<T>& a, const T* HWY_RESTRICT weights, std::int64_t line,
                          std::int64_t pixel, T* HWY_RESTRICT results, std::int64_t result_line) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left[kLines], right[kLines];
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) left[l] = right[l] = hn::Zero(d);
  const T* const* rows = a.rows + line * a.terms;
  for (std::int64_t t = 0; t < a.terms; ++t)
    for (std::int64_t s = 0; s < a.taps; ++s) {
      const V w = hn::Set(d, weights[t * a.taps + s]);
      const std::int64_t at = a.offsets[s] + pixel;
#pragma GCC unroll 4
      for (int l = 0; l < kLines; ++l) {
        const T* HWY_RESTRICT row = rows[l * a.terms + t] + at;
        left[l] = hn::MulAdd(w, hn::LoadU(d, row), left[l]);
        right[l] = hn::MulAdd(w, hn::LoadU(d, row + lanes), right[l]);
      }
    }
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) {
    T* result = results + (line + l) * result_line + pixel;
    hn::StoreU(left[l], d, result);
    hn::StoreU(right[l], d, result + lanes);
  }
}

template <class T>
void RunPlaneLines(const PlaneSource<T>& a, const T* weights, T* results,
                   std::int64_t result_line) {
  const auto tile = kPlaneVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t line = 0;
  for (; line + kPlaneLines <= a.lines; line += kPlaneLines)
    for (std::int64_t pixel = 0; pixel < a.pixels; pixel += tile)
      PlaneTile<kPlaneLines>(a, weights, line, pixel, results, result_line);
  for (; line < a.lines; ++line)
    for (std::int64_t pixel = 0; pixel < a.pixels; pixel += tile)
      PlaneTile<1>(a, weights, line, pixel, results, result_line);
}

// Taps [first, first + kTaps) of one term.
template <int kTaps, class T>
HWY_INLINE void PlaneFilterTaps(const PlaneSource<T>& a, std::int64_t term, std::int64_t first,
                                const T* HWY_RESTRICT gradients, std::int64_t gradient_line,
                                double* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left[kTaps], right[kTaps];
#pragma GCC unroll 4
  for (int s = 0; s < kTaps; ++s) left[s] = right[s] = hn::Zero(d);
  // The source past the last pixel may be NaN or infinite, which a zero gradient does not cancel.
  const std::int64_t tile = kPlaneVectors * lanes, whole = a.pixels / tile * tile;
  const std::int64_t rest = a.pixels - whole;
  const auto rest_left = hn::FirstN(d, static_cast<std::size_t>(std::min(rest, lanes)));
  const auto rest_right =
      hn::FirstN(d, static_cast<std::size_t>(std::max(rest - lanes, std::int64_t{0})));
  for (std::int64_t line = 0; line < a.lines; ++line) {
    const T* HWY_RESTRICT row = a.rows[line * a.terms + term];
    const T* HWY_RESTRICT gradient = gradients + line * gradient_line;
    const auto add = [&](std::int64_t pixel, auto keep_left, auto keep_right) HWY_ATTR {
      const V slope_left = hn::LoadU(d, gradient + pixel);
      const V slope_right = hn::LoadU(d, gradient + pixel + lanes);
#pragma GCC unroll 4
      for (int s = 0; s < kTaps; ++s) {
        const T* HWY_RESTRICT source = row + a.offsets[first + s] + pixel;
        left[s] = hn::MulAdd(slope_left, keep_left(hn::LoadU(d, source)), left[s]);
        right[s] = hn::MulAdd(slope_right, keep_right(hn::LoadU(d, source + lanes)), right[s]);
      }
    };
    const auto keep = [](V x) HWY_ATTR { return x; };
    for (std::int64_t pixel = 0; pixel < whole; pixel += tile) add(pixel, keep, keep);
    if (rest > 0)
      add(
          whole, [&](V x) HWY_ATTR { return hn::IfThenElseZero(rest_left, x); },
          [&](V x) HWY_ATTR { return hn::IfThenElseZero(rest_right, x); });
  }
#pragma GCC unroll 4
  for (int s = 0; s < kTaps; ++s)
    sums[s] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(left[s], right[s]))));
}

template <class T>
void RunPlaneFilterLines(const PlaneSource<T>& a, const T* gradients, std::int64_t gradient_line,
                         double* sums) {
  for (std::int64_t term = 0; term < a.terms; ++term, sums += a.taps) {
    std::int64_t s = 0;
    for (; s + kPlaneTaps <= a.taps; s += kPlaneTaps)
      PlaneFilterTaps<kPlaneTaps>(a, term, s, gradients, gradient_line, sums + s);
    if (a.taps - s == 3) {
      PlaneFilterTaps<3>(a, term, s, gradients, gradient_line, sums + s);
      s += 3;
    }
    for (; s < a.taps; ++s) PlaneFilterTaps<1>(a, term, s, gradients, gradient_line, sums + s);
  }
}

template <class T>
PlaneKernel<T> MakePlaneKernel() {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return {kPlaneVectors * lanes, RunPlaneLines<T>, RunPlaneFilterLines<T>};
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
