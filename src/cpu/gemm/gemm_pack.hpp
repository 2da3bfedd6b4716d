// Packs GEMM operands into panels: element (index i, k) of a panel is at [k * width + i].
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/gemm/gemm.hpp"
#include "cpu/kernels/interleave.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kWidestPanel = 64;
inline constexpr std::int64_t kRowChunk = 512;  // elements of a row along the index read at once

// Packs one panel from rows along K: `count` <= `width` indices.
template <class T>
void pack_panel(const GemmOperand<T>& operand, std::int64_t batch, std::int64_t index,
                std::int64_t count, std::int64_t k, std::int64_t k_count, std::int64_t width,
                T* panel) {
  constexpr std::int64_t kChunk = 128;  // elements of K
  alignas(64) T buffer[kWidestPanel * kChunk];
  const T* rows[kWidestPanel];
  const InterleaveRows<T> interleave = interleave_rows<T>();
  if (count < width) std::fill_n(panel, k_count * width, T{0});
  for (std::int64_t first = 0; first < k_count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, k_count - first);
    for (std::int64_t i = 0; i < count; ++i)
      rows[i] = operand.view(batch, index + i, k + first, length, buffer + i * kChunk);
    interleave(rows, count, length, width, panel + first * width);
  }
}

// Packs panels `distance` elements apart from rows along the index, as many as `indices` fill.
template <class T>
void pack_panels(const GemmOperand<T>& operand, std::int64_t batch, std::int64_t index,
                 std::int64_t indices, std::int64_t k, std::int64_t k_count, std::int64_t width,
                 std::int64_t distance, T* panels) {
  alignas(64) T buffer[kRowChunk];
  const std::int64_t step = kRowChunk / width * width;
  const auto panel_bytes = static_cast<std::size_t>(width) * sizeof(T);
  for (std::int64_t first = 0; first < indices; first += step)
    for (std::int64_t l = 0; l < k_count; ++l) {
      const std::int64_t length = std::min(step, indices - first);
      const T* row = operand.view(batch, k + l, index + first, length, buffer);
      T* target = panels + first / width * distance + l * width;
      std::int64_t done = 0;
      for (; done + width <= length; done += width, target += distance)
        std::memcpy(target, row + done, panel_bytes);
      if (done < length)
        std::fill(std::copy(row + done, row + length, target), target + width, T{0});
    }
}

// Packs one panel from rows of either direction.
template <class T>
void pack_any(const GemmOperand<T>& operand, std::int64_t batch, std::int64_t index,
              std::int64_t count, std::int64_t k, std::int64_t k_count, std::int64_t width,
              T* panel) {
  if (operand.along_k())
    pack_panel(operand, batch, index, count, k, k_count, width, panel);
  else
    pack_panels(operand, batch, index, count, k, k_count, width, 0, panel);
}

}  // namespace ashlar::cpu
