// Panels of B that are multiplied next, brought nearer while others are.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

template <class T>
class PanelsAhead {
 public:
  PanelsAhead() = default;
  // `elements` of one panel, or of each of PanelAhead::kStreams panels that are `distance` apart,
  // spread over the next `calls` products of `depth` steps. `distance` 0: one panel.
  PanelsAhead(const T* first, std::int64_t elements, std::int64_t distance, std::int64_t calls,
              std::int64_t depth) {
    constexpr std::int64_t kLine = PanelAhead<T>::kLine;
    const std::int64_t lines = distance == 0 ? PanelAhead<T>::kStreams : 1;  // of a panel at once
    rest_.at = first;
    rest_.distance = distance == 0 ? kLine : distance;
    rest_.advance = lines * kLine;
    rest_.left = elements / rest_.advance;
    rest_.repeats = divide_up(rest_.left, std::max<std::int64_t>(calls * (depth / 4), 1));
  }

  // The share of a product of `depth` steps.
  PanelAhead<T> take(std::int64_t depth) {
    PanelAhead<T> share = rest_;
    share.left = std::min(rest_.left, depth / 4 * rest_.repeats);
    rest_.at += share.left * rest_.advance;
    rest_.left -= share.left;
    return share;
  }

 private:
  PanelAhead<T> rest_;
};

}  // namespace ashlar::cpu
