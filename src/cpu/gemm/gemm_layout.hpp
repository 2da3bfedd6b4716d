// Limits of the GEMM strategies, and the layout of GEMM scratch.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm.hpp"
#include "cpu/kernels/interleave.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kSkinny = 32;  // largest M for which B is streamed once, unpacked
// largest M for which a B of small K is also read unpacked
inline constexpr std::int64_t kShallowRows = 512;
inline constexpr std::int64_t kShallowK = 256;
inline constexpr std::int64_t kStreamRows = 32;  // rows of B that a skinny GEMM streams together

// Block `number` of `count` even blocks of [0, extent).
struct Range {
  std::int64_t begin, end;
  Range(std::int64_t extent, std::int64_t number, std::int64_t count)
      : begin(extent * number / count), end(extent * (number + 1) / count) {}
  std::int64_t size() const { return end - begin; }
};

// Per-thread scratch in elements: the packed block of A at 0, then these.
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

// Grain: how many of `tasks` equal tasks are worth a thread.
inline std::int64_t tasks_worth_a_thread(std::int64_t tasks, double flops) {
  constexpr double kFlopsWorthAThread = 200e3;
  const double each = flops / static_cast<double>(tasks) + 1.0;
  return static_cast<std::int64_t>(kFlopsWorthAThread / each) + 1;
}

}  // namespace ashlar::cpu
