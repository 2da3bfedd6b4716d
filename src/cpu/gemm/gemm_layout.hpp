// Parts of a product and of its scratch.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm.hpp"
#include "cpu/kernels/interleave.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kSkinny = 32;        // rows up to which B is read once, as it lies
inline constexpr std::int64_t kShallowRows = 512;  // up to which a shallow B is, too
inline constexpr std::int64_t kShallowK = 256;
inline constexpr std::int64_t kStreamRows = 32;  // rows of B a skinny product reads side by side

// The part of [0, extent) that is block `number` of `count` even ones.
struct Range {
  std::int64_t begin, end;
  Range(std::int64_t extent, std::int64_t number, std::int64_t count)
      : begin(extent * number / count), end(extent * (number + 1) / count) {}
  std::int64_t size() const { return end - begin; }
};

// What a thread has for itself, in elements: A's block at 0, then these.
struct GemmLayout {
  std::int64_t c = 0, b = 0, total = 0;

  GemmLayout() = default;
  GemmLayout(const GemmBlocks& blocks, std::int64_t line)
      : c(round_up(round_up(blocks.rows, kPanelRowMultiple) * blocks.k + kInterleaveSlack, line)),
        b(c + round_up(blocks.rows * blocks.columns, line)),
        total(b + round_up(std::max(kStreamRows * blocks.columns,
                                    blocks.k * kPanelColumnMultiple<float>),
                           line)) {}
};

// How many of `tasks` equal tasks pay for a thread.
inline std::int64_t tasks_worth_a_thread(std::int64_t tasks, double flops) {
  constexpr double kFlopsWorthAThread = 200e3;
  const double each = flops / static_cast<double>(tasks) + 1.0;
  return static_cast<std::int64_t>(kFlopsWorthAThread / each) + 1;
}

}  // namespace ashlar::cpu
