// Iteration space of reductions and norms: a tensor tiled by equal boxes (a box holds the elements
// that share one sum, mean or maximum), visited row by row.
#pragma once

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "cpu/kernels/row_ops.hpp"
#include "cpu/operand.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kRowLength = 2048;    // elements of a row processed at once
inline constexpr std::int64_t kLongRow = 8192;      // the same where a row should stay whole
inline constexpr std::int64_t kStripeLength = 512;  // boxes processed side by side

// Two traversals. If the row axis is inside the boxes, an item is one box and each row belongs to
// that box. If rows cross boxes ("columns"), an item is a stripe of up to kStripeLength boxes, one
// box per element of a row.
class BoxSpace {
 public:
  BoxSpace() = default;
  // `boxes`: number of boxes along each axis; it divides the extents of `space`.
  BoxSpace(const Dims& space, const Dims& boxes, int axis, std::int64_t row_length = kRowLength)
      : space_(space), axis_(axis), row_length_(row_length) {
    const int rank = space.rank();
    for (int a = 0; a < rank; ++a) {
      box_.push_back(boxes[a] == 0 ? 0 : space[a] / boxes[a]);
      grid_.push_back(boxes[a]);
    }
    columns_ = boxes[axis] == space[axis] && space[axis] > 1;
    steps_ = box_;
    if (columns_)
      grid_[axis] = (space[axis] + kStripeLength - 1) / kStripeLength;
    else
      steps_[axis] = (box_[axis] + row_length - 1) / row_length;
    items_ = element_count(grid_);
    rows_ = element_count(steps_);
    // The split depends on the shape alone, so that sums do not depend on the thread count.
    constexpr std::int64_t kChunks = 64;
    splits_ = items_ == 0
                  ? 1
                  : std::clamp<std::int64_t>(kChunks / items_, 1, std::max<std::int64_t>(rows_, 1));
    if (items_ * rows_ < 16) splits_ = 1;
  }

  bool columns() const { return columns_; }
  int axis() const { return axis_; }
  std::int64_t items() const { return items_; }
  std::int64_t splits() const { return splits_; }  // preferred number of chunks of an item's rows
  std::int64_t rows() const { return rows_; }      // per item
  std::int64_t box_size() const { return element_count(box_); }
  std::int64_t max_width() const { return columns_ ? std::min(kStripeLength, space_[axis_]) : 1; }

  // Returns the number of boxes in an item and sets `coords` to its first element.
  std::int64_t origin(std::int64_t item, Coords& coords) const {
    std::int64_t width = 1;
    for (int a = space_.rank() - 1; a >= 0; --a) {
      const std::int64_t position = item % grid_[a];
      item /= grid_[a];
      const bool stripe = columns_ && a == axis_;
      coords[static_cast<std::size_t>(a)] = position * (stripe ? kStripeLength : box_[a]);
      if (stripe) width = std::min(kStripeLength, space_[a] - position * kStripeLength);
    }
    return width;
  }

  // Calls body(coords, count) for the rows of chunk `split` of `splits` of an item.
  template <class Body>
  void for_rows(std::int64_t item, std::int64_t split, std::int64_t splits, Body&& body) const {
    Coords start, coords;
    const std::int64_t width = origin(item, start);
    const std::int64_t begin = rows_ * split / splits, end = rows_ * (split + 1) / splits;
    if (begin == end) return;
    Coords position{};
    std::int64_t rest = begin;
    for (int a = space_.rank() - 1; a >= 0; --a) {
      position[static_cast<std::size_t>(a)] = rest % steps_[a];
      rest /= steps_[a];
    }
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::size_t a = 0; a < static_cast<std::size_t>(space_.rank()); ++a)
        coords[a] = start[a] + position[a];
      std::int64_t count = width;
      if (!columns_) {
        const auto axis = static_cast<std::size_t>(axis_);
        coords[axis] = start[axis] + position[axis] * row_length_;
        count = std::min(row_length_, box_[axis_] - position[axis] * row_length_);
      }
      body(coords, count);
      for (int a = space_.rank() - 1; a >= 0; --a) {
        if (++position[static_cast<std::size_t>(a)] < steps_[a]) break;
        position[static_cast<std::size_t>(a)] = 0;
      }
    }
  }

 private:
  Dims space_, box_, grid_, steps_;
  int axis_ = 0;
  std::int64_t row_length_ = kRowLength;
  bool columns_ = false;
  std::int64_t items_ = 0, rows_ = 0, splits_ = 1;
};

inline double combine(Fold fold, double a, double b) {
  if (fold == Fold::sum) return a + b;
  if (fold == Fold::product) return a * b;
  if (a != a || b != b) return a != a ? a : b;
  return fold == Fold::minimum ? std::min(a, b) : std::max(a, b);
}

inline double neutral(Fold fold) {
  if (fold == Fold::sum) return 0.0;
  if (fold == Fold::product) return 1.0;
  const double infinity = std::numeric_limits<double>::infinity();
  return fold == Fold::minimum ? infinity : -infinity;
}

// Folds kCount quantities at once over a chunk of an item. totals[q * stride + i] receives quantity
// q of box i.
//   by_row(coords, count, T (&values)[kCount]): the fold of one row, if rows are inside a box
//   by_column(coords, count, T* (&accumulators)[kCount]): folds a row into one accumulator per
//   element
// Rounding errors grow with the square root of the number of rows: row results in T are combined in
// double, columns in blocks of 64 rows.
template <class T, int kCount, class ByRow, class ByColumn>
void fold_boxes(const RowOps<T>& ops, const BoxSpace& space, std::int64_t item, std::int64_t split,
                std::int64_t splits, Fold fold, ByRow&& by_row, ByColumn&& by_column, T* totals,
                std::int64_t stride) {
  if (!space.columns()) {
    double sums[kCount];
    std::fill(sums, sums + kCount, neutral(fold));
    space.for_rows(item, split, splits, [&](const Coords& coords, std::int64_t count) {
      T values[kCount];
      by_row(coords, count, values);
      for (int q = 0; q < kCount; ++q)
        sums[q] = combine(fold, sums[q], static_cast<double>(values[q]));
    });
    for (int q = 0; q < kCount; ++q) totals[q * stride] = static_cast<T>(sums[q]);
    return;
  }
  constexpr std::int64_t kBlockRows = 64;
  alignas(64) T block[kCount][kStripeLength];
  T* accumulators[kCount];
  for (int q = 0; q < kCount; ++q) accumulators[q] = block[q];
  Coords start;
  const std::int64_t width = space.origin(item, start);
  const auto first = static_cast<T>(neutral(fold));
  for (int q = 0; q < kCount; ++q) {
    std::fill(totals + q * stride, totals + q * stride + width, first);
    std::fill(block[q], block[q] + kStripeLength, first);
  }
  std::int64_t pending = 0;
  const auto flush = [&] {
    for (int q = 0; q < kCount; ++q) {
      ops.fold_into(fold, Premap::identity, block[q], width, totals + q * stride);
      std::fill(block[q], block[q] + width, first);
    }
    pending = 0;
  };
  space.for_rows(item, split, splits, [&](const Coords& coords, std::int64_t count) {
    by_column(coords, count, accumulators);
    if (++pending == kBlockRows) flush();
  });
  flush();
}

}  // namespace ashlar::cpu
