// Direct convolution of rows: linear combinations and dot products; see conv_direct.cpp.
#include <cstdint>

#include "cpu/kernels/loops-inl.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_CONV_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_CONV_DIRECT_INL_H_
#undef ASHLAR_CPU_CONV_DIRECT_INL_H_
#else
#define ASHLAR_CPU_CONV_DIRECT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void CombineRows(std::int64_t count, std::int64_t terms, const T* rows, std::int64_t stride,
                 const T* weights, T* out) {
  const hn::ScalableTag<T> d;
  const auto sum = [&](std::int64_t i, auto load) HWY_ATTR {
    auto total = hn::Zero(d);
    for (std::int64_t t = 0; t < terms; ++t)
      total = hn::MulAdd(hn::Set(d, weights[t]), load(rows + t * stride + i), total);
    return total;
  };
  ForVectors(d, count, out, sum);
}

template <class T>
T DotRows(std::int64_t count, const T* a, const T* b) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    total = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), total);
  if (i < count) {
    const auto rest = static_cast<std::size_t>(count - i);
    total = hn::MulAdd(LoadPart(d, a + i, rest), LoadPart(d, b + i, rest), total);
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

template <class T>
ConvDirect<T> MakeConvDirect() {
  return {CombineRows<T>, DotRows<T>};
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
