// Software prefetch of the panels of B that the next micro-kernel calls read.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

template <class T>
class PanelPrefetcher {
 public:
  PanelPrefetcher() = default;
  // Prefetches `elements` of one panel (`distance` 0), or of each of PanelPrefetch::kStreams panels
  // `distance` apart, spread over the next `calls` micro-kernel calls of `k` steps.
  PanelPrefetcher(const T* first, std::int64_t elements, std::int64_t distance, std::int64_t calls,
                  std::int64_t k) {
    constexpr std::int64_t kLine = PanelPrefetch<T>::kLine;
    // lines of a panel at once
    const std::int64_t lines = distance == 0 ? PanelPrefetch<T>::kStreams : 1;
    rest_.at = first;
    rest_.distance = distance == 0 ? kLine : distance;
    rest_.advance = lines * kLine;
    rest_.left = elements / rest_.advance;
    rest_.repeats = divide_up(rest_.left, std::max<std::int64_t>(calls * (k / 4), 1));
  }

  // The share of one micro-kernel call of `k` steps.
  PanelPrefetch<T> take(std::int64_t k) {
    PanelPrefetch<T> share = rest_;
    share.left = std::min(rest_.left, k / 4 * rest_.repeats);
    rest_.at += share.left * rest_.advance;
    rest_.left -= share.left;
    return share;
  }

 private:
  PanelPrefetch<T> rest_;
};

}  // namespace ashlar::cpu
