// Operands and iteration space of a scan.
#pragma once

#include "cpu/box_space.hpp"
#include "cpu/engines/pooling.hpp"
#include "plan/engine.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kScanRow = kRowLength;  // elements of a line at once
inline constexpr std::int64_t kScanStripe = 1024;     // lines side by side: a page of floats
inline constexpr std::int64_t kScanChunk = 32768;     // elements of a line, of 4 or 8 bytes
inline constexpr std::int64_t kFlushRows = 64;

// Two traversals: along the lines, where an item is one line; or across, where rows run along
// another axis and an item is a stripe of up to kScanStripe lines. Few long lines are split into
// chunks, by the shape alone, so that results do not depend on the thread count.
struct ScanShape {
  PointwiseProgram x, y;
  Dims space, lines;
  int axis = -1;  // of the scan, with more than one element; -1: none has
  int row_axis;
  std::int64_t length = 1;  // of a line
  RowLoop items;
  std::int64_t chunk, chunks;

  explicit ScanShape(const Region& region)
      : x(region.prologues[Scan::x]), y(region.epilogue), space(x.space), lines(space) {
    constexpr std::int64_t kFewItems = 16, kNarrow = 8;
    lines[static_cast<int>(region.anchor_as<Scan>()->axis)] = 1;
    merge_axes({&x, &y}, {&space, &lines});
    for (int a = 0; a < space.rank(); ++a)
      if (lines[a] != space[a]) axis = a;
    row_axis = choose_row_axis(space, {&x, &y});
    if (axis >= 0 && space[row_axis] < kNarrow) row_axis = axis;
    if (axis >= 0) length = space[axis];
    items = {lines, row_axis, along() ? 1 : kScanStripe};
    const std::int64_t width = along() ? 1 : std::min(kScanStripe, space[row_axis]);
    const std::int64_t rows = kScanChunk / std::max<std::int64_t>(width, 1);
    chunk = items.count() < kFewItems ? (rows + kFlushRows - 1) / kFlushRows * kFlushRows : length;
    chunks = length == 0 ? 0 : (length + chunk - 1) / chunk;
  }

  bool along() const { return row_axis == axis; }
  std::int64_t width() const { return along() ? 1 : std::min(kScanStripe, space[row_axis]); }
};

// The state of up to kScanStripe lines between two chunks: the fold so far; of logsumexp the sum of
// exp(x - shift), where `shift` is the maximum so far.
struct ScanState {
  double* fold;
  double* shift;
};

inline void begin_scan(ScanMode mode, std::int64_t width, const ScanState& state) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double neutral = mode == ScanMode::mul   ? 1.0
                         : mode == ScanMode::min ? infinity
                         : mode == ScanMode::max ? -infinity
                                                 : 0.0;
  std::fill(state.fold, state.fold + width, neutral);
  std::fill(state.shift, state.shift + width, -infinity);
}

std::unique_ptr<Kernel> build_log_sum_exp_scan(const Region& region);

}  // namespace ashlar::cpu
