// Panels of B that are multiplied next, brought nearer while others are.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

template <class T>
class PanelPrefetcher {
 public:
  PanelPrefetcher() = default;
  // `elements` of one panel, or of each of PanelPrefetch::kStreams panels that are `distance`
  // apart, spread over the next `calls` products of `depth` steps. `distance` 0: one panel.
  PanelPrefetcher(const T* first, std::int64_t elements, std::int64_t distance, std::int64_t calls,
                  std::int64_t k) {
    constexpr std::int64_t kLine = PanelPrefetch<T>::kLine;
    const std::int64_t lines =
        distance == 0 ? PanelPrefetch<T>::kStreams : 1;  // of a panel at once
    rest_.at = first;
    rest_.distance = distance == 0 ? kLine : distance;
    rest_.advance = lines * kLine;
    rest_.left = elements / rest_.advance;
    rest_.repeats = divide_up(rest_.left, std::max<std::int64_t>(calls * (k / 4), 1));
  }

  // The share of a product of `depth` steps.
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
