// Weighted sums of gathered elements. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_GATHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_GATHER_INL_H_
#undef ASHLAR_CPU_KERNELS_GATHER_INL_H_
#else
#define ASHLAR_CPU_KERNELS_GATHER_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/gather.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Gather(const T* x, const GatherIndex<T>* index, const T* weight, std::int64_t taps,
            std::int64_t stride, std::int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t k = 0; k < taps; ++k) {
      const auto w = hn::LoadU(d, weight + k * stride + i);
      const auto picked = hn::GatherIndex(d, x, hn::LoadU(di, index + k * stride + i));
      sum = hn::MulAdd(w, hn::IfThenElseZero(hn::Ne(w, hn::Zero(d)), picked), sum);
    }
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    T sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const T w = weight[k * stride + i];
      if (w != T{0}) sum += w * x[index[k * stride + i]];
    }
    y[i] = sum;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
