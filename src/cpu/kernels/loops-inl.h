// Row loops with tails: the SIMD body of every kernel is a function of whole vectors.
#include <cstdint>
#include <cstring>

#include "cpu/kernels/pointwise.hpp"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_LOOPS_INL_H_
#undef ASHLAR_CPU_LOOPS_INL_H_
#else
#define ASHLAR_CPU_LOOPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads the first `rest` lanes, zero in the others; touches no other memory.
template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const hn::TFromD<D>* source, std::size_t rest) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
  std::memcpy(lanes, source, rest * sizeof(lanes[0]));
  return hn::LoadU(d, lanes);
}

template <class D>
HWY_INLINE void StorePart(D d, hn::Vec<D> value, hn::TFromD<D>* destination, std::size_t rest) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::StoreU(value, d, lanes);
  std::memcpy(destination, lanes, rest * sizeof(lanes[0]));
}

// destination[i] = f(sources[i]...), where f maps vectors of tag `ds` to tag `dt` with the same
// lane count. The destination may alias a source.
template <class DS, class DT, class F, class... Sources>
HWY_INLINE void TransformRow(DS ds, DT dt, std::int64_t count, hn::TFromD<DT>* destination, F f,
                             const Sources*... sources) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(ds));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(f(hn::LoadU(ds, sources + i)...), dt, destination + i);
  if (i >= count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  StorePart(dt, f(LoadPart(ds, sources + i, rest)...), destination + i, rest);
}

// The same within one type, with hints.
template <class D, class F, class First, class... Others>
HWY_INLINE void TransformRowWithHints(D d, std::int64_t count, hn::TFromD<D>* destination,
                                      const RowHints& hints, F f, const First* first,
                                      const Others*... others) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Without a prefetch hint, prefetches what is read anyway. An integer, since it may be no valid
  // address.
  const auto prefetch =
      reinterpret_cast<std::uintptr_t>(hints.prefetch != nullptr ? hints.prefetch : first);
  const bool stream = hints.stream;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hwy::Prefetch(
        reinterpret_cast<const First*>(prefetch + static_cast<std::size_t>(i) * sizeof(*first)));
    const auto value = f(hn::LoadU(d, first + i), hn::LoadU(d, others + i)...);
    if (stream)
      hn::Stream(value, d, destination + i);
    else
      hn::StoreU(value, d, destination + i);
  }
  if (i >= count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  StorePart(d, f(LoadPart(d, first + i, rest), LoadPart(d, others + i, rest)...), destination + i,
            rest);
}

// destination[i...] = f(i, load), where `load` reads a vector (or the tail's part) from a pointer.
template <class D, class F>
HWY_INLINE void ForVectors(D d, std::int64_t count, hn::TFromD<D>* destination, F f) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(f(i, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); }), d, destination + i);
  if (i >= count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  const auto load_part = [&](const T* p) HWY_ATTR { return LoadPart(d, p, rest); };
  StorePart(d, f(i, load_part), destination + i, rest);
}

// The same, with hints. For streaming, a head loop runs up to a cache-line boundary.
template <class D, class F>
HWY_INLINE void ForVectorsWithHints(D d, std::int64_t count, hn::TFromD<D>* destination,
                                    const RowHints& hints, F f) {
  using T = hn::TFromD<D>;
  constexpr std::size_t kLine = 64;  // bytes
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto part = [&](std::int64_t i, std::int64_t length) HWY_ATTR {
    const auto rest = static_cast<std::size_t>(length);
    const auto load_part = [&](const T* p) HWY_ATTR { return LoadPart(d, p, rest); };
    StorePart(d, f(i, load_part), destination + i, rest);
  };
  const auto load = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
  std::int64_t i = 0;
  if (hints.stream) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(destination) % kLine;
    const auto head = static_cast<std::int64_t>((kLine - past) % kLine / sizeof(T));
    while (i < head && i < count) {
      const std::int64_t length = HWY_MIN(HWY_MIN(head, count) - i, lanes);
      part(i, length);
      i += length;
    }
  }
  const auto prefetch =
      reinterpret_cast<std::uintptr_t>(hints.prefetch);  // may be no valid address
  const bool stream = hints.stream, fetch = hints.prefetch != nullptr;
  for (; i + lanes <= count; i += lanes) {
    if (fetch)
      hwy::Prefetch(reinterpret_cast<const T*>(prefetch + static_cast<std::size_t>(i) * sizeof(T)));
    const auto value = f(i, load);
    if (stream)
      hn::Stream(value, d, destination + i);
    else
      hn::StoreU(value, d, destination + i);
  }
  if (i < count) part(i, count - i);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
