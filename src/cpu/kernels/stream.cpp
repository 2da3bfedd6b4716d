// Non-temporal stores and prefetch, dispatched to the best SIMD target.
#include "cpu/kernels/stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/stream.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kLine = 64;  // bytes

// Prefetch addresses are integers, not pointers: they may be no valid address.
HWY_INLINE void FetchLine(std::uintptr_t address) {
  hwy::Prefetch(reinterpret_cast<const std::uint8_t*>(address));
}

void StreamRow(const void* from, std::size_t bytes, void* to, const void* prefetch,
               std::size_t prefetch_bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* destination = static_cast<std::uint8_t*>(to);
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(destination) % kLine;
  const std::size_t head = past_line == 0 ? 0 : std::min(bytes, kLine - past_line);
  const std::size_t last = lanes < 16 || lanes > kLine ? head : bytes - (bytes - head) % kLine;
  const auto fetched = reinterpret_cast<std::uintptr_t>(prefetch);
  if (head != 0) std::memcpy(destination, source, head);
  std::size_t i = head;
  for (; i < last; i += kLine) {
    if (i - head < prefetch_bytes) FetchLine(fetched + i - head);
    for (std::size_t j = 0; j < kLine; j += lanes)
      hn::Stream(hn::LoadU(d, source + i + j), d, destination + i + j);
  }
  if (i != bytes) std::memcpy(destination + i, source + i, bytes - i);
  for (i -= head; i < prefetch_bytes; i += kLine) FetchLine(fetched + i);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(StreamRow);

void stream_row(const void* source, std::int64_t bytes, void* destination, const void* prefetch,
                std::int64_t prefetch_bytes) {
  HWY_DYNAMIC_DISPATCH(StreamRow)
  (source, static_cast<std::size_t>(bytes), destination, prefetch,
   static_cast<std::size_t>(prefetch_bytes));
}

void prefetch_to_l1(const void* prefetch, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(prefetch);
  for (std::int64_t i = 0; i < bytes; i += kLine)
    hwy::Prefetch(reinterpret_cast<const char*>(first + static_cast<std::uintptr_t>(i)));
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
