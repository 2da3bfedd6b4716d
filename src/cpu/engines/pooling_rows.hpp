// Pooling in place, for x in memory as T: folds the rows of x that windows cover at once.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/window_rows.hpp"

namespace ashlar::cpu {

// One row of y at a time. row() returns false for the cases it does not support: padding that
// counts as values, and x that needs conversion.
template <class T>
class PoolingRows {
 public:
  // `x`: the program that reads x. Integer averages are not supported.
  PoolingRows(const PoolingShape& shape, const PointwiseProgram& x, bool truncates)
      : shape_(shape), kernel_(window_rows<T>()) {
    std::int64_t positions = 1;
    for (std::int64_t extent : shape.op.window) positions = checked_mul(positions, extent);
    usable_ = shape.spatial() <= kAxes && !truncates && positions <= kMaxRows && x.is_plain_load();
    if (!usable_) return;
    strides_ = x.steps[0].view.strides;
    if (!shape.along()) return;
    const int last = shape.spatial() - 1;
    for (std::int64_t o = 0; o < shape.y[shape.axis]; ++o)
      divisors_.push_back(static_cast<T>(shape.op.mode == ResampleMode::avgpool_include_padding
                                             ? shape.op.window[last]
                                             : shape.covered(last, o)));
  }

  // Computes the row of y at `out`.
  bool row(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
           T* result) const {
    if (!usable_ || !x.is_memory()) return false;
    return shape_.along() ? row_along(x, out, count, result) : row_across(x, out, count, result);
  }

 private:
  static constexpr int kAxes = 3;
  static constexpr std::int64_t kMaxRows = 64;
  // split_pairs() reads and writes whole vectors.
  static constexpr std::int64_t kVector = 64 / sizeof(T), kPairSlack = 2 * kVector;
  static constexpr std::int64_t kPoolingHalf = kPoolingSegment / 2 + kVector;

  // The part of x that a window covers, on the first `axes` spatial axes.
  struct Box {
    Coords first;  // of x
    std::array<std::int64_t, kAxes> extent = {1, 1, 1}, stride = {0, 0, 0};
    bool whole = true, empty = false;
  };
  Box box_at(const Coords& out, int axes) const {
    Box box;
    box.first = out;
    for (int s = 0; s < axes; ++s) {
      const auto axis = static_cast<std::size_t>(s + 2), a = static_cast<std::size_t>(s);
      const std::int64_t begin = shape_.start(s, out[axis]), end = begin + shape_.op.window[s];
      box.first[axis] = std::max<std::int64_t>(begin, 0);
      box.extent[a] = std::min(end, shape_.x[s + 2]) - box.first[axis];
      box.stride[a] = strides_[s + 2];
      box.whole &= box.extent[a] == shape_.op.window[s];
      box.empty |= box.extent[a] <= 0;
    }
    return box;
  }
  using Rows = std::array<const T*, kMaxRows>;
  static std::int64_t list_rows(const Box& box, const T* origin, Rows& rows) {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < box.extent[0]; ++i)
      for (std::int64_t j = 0; j < box.extent[1]; ++j)
        for (std::int64_t k = 0; k < box.extent[2]; ++k)
          rows[static_cast<std::size_t>(n++)] =
              origin + i * box.stride[0] + j * box.stride[1] + k * box.stride[2];
    return n;
  }
  bool padding_is_a_value() const {
    return shape_.is_maximum() && shape_.op.padding_mode != PaddingMode::neg_inf;
  }

  // Asks for what the rows of later results read: the hardware does not follow short rows. The
  // address may lie behind x. Inlined by force, because g++ removes calls of functions that only
  // ask.
  [[gnu::always_inline]] static void fetch_ahead(const T* row, std::int64_t count) {
    constexpr std::int64_t kBytes = 6144, kLine = 64;
    const auto ahead = reinterpret_cast<std::uintptr_t>(row) + kBytes;
    for (std::int64_t at = 0; at < count * static_cast<std::int64_t>(sizeof(T)); at += kLine)
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + static_cast<std::uintptr_t>(at)));
  }

  // Rows across windows: channels last.
  bool row_across(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
                  T* result) const {
    const Box box = box_at(out, shape_.spatial());
    if (box.empty || (!box.whole && padding_is_a_value())) return false;
    Rows rows;
    const std::int64_t n = list_rows(box, x.view(box.first.data(), count, nullptr), rows);
    // Windows that overlap by half or more read what is in the cache.
    const int last = shape_.spatial() - 1;
    if (2 * shape_.op.stride[last] > shape_.op.window[last])
      for (std::int64_t r = 0; r < n; ++r) fetch_ahead(rows[static_cast<std::size_t>(r)], count);
    if (shape_.is_maximum())
      kernel_.maximum(rows.data(), n, count, result);
    else
      kernel_.average(rows.data(), n, static_cast<T>(shape_.divisor(out, shape_.spatial())), count,
                      result);
    return true;
  }

  // Windows along rows: folds the rows of the other axes first, then the window's own positions,
  // shifted; every stride-th of those is a result.
  bool row_along(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
                 T* result) const {
    const int last = shape_.spatial() - 1;
    const auto axis = static_cast<std::size_t>(shape_.axis);
    const std::int64_t window = shape_.op.window[last], stride = shape_.op.stride[last];
    const std::int64_t begin = shape_.start(last, out[axis]),
                       length = (count - 1) * stride + window;
    const std::int64_t low = std::clamp<std::int64_t>(begin, 0, shape_.x[shape_.axis]),
                       high = std::clamp(begin + length, low, shape_.x[shape_.axis]);
    Box box = box_at(out, last);
    const bool whole = box.whole && high - low == length;
    if (box.empty || low == high || (!whole && padding_is_a_value())) return false;
    box.first[axis] = low;
    const auto fold = shape_.is_maximum() ? kernel_.maximum : kernel_.sum;
    const T neutral = shape_.is_maximum() ? -std::numeric_limits<T>::infinity() : T{0};
    alignas(64) T line[kPoolingSegment + kPairSlack];
    std::fill(line, line + (low - begin), neutral);
    std::fill(line + (high - begin), line + length, neutral);
    Rows rows;
    const std::int64_t n = list_rows(box, x.view(box.first.data(), high - low, nullptr), rows);
    if (last > 0)
      for (std::int64_t r = 0; r < shape_.op.stride[last - 1]; ++r)
        fetch_ahead(rows[0] + r * strides_[last + 1], high - low);
    fold(rows.data(), n, high - low, line + (low - begin));
    if (stride == 2) {
      // Window position k of result j is element j + k / 2 of the even or odd elements.
      alignas(64) T even[kPoolingHalf], odd[kPoolingHalf];
      kernel_.split_pairs(line, (length + 1) / 2, even, odd);
      for (std::int64_t k = 0; k < window; ++k)
        rows[static_cast<std::size_t>(k)] = (k % 2 == 0 ? even : odd) + k / 2;
      fold(rows.data(), window, count, shape_.is_maximum() ? result : line);
      if (!shape_.is_maximum()) divide_along(line, out, count, result);
      return true;
    }
    for (std::int64_t k = 0; k < window; ++k) rows[static_cast<std::size_t>(k)] = line + k;
    // Maxima of stride 1 are final; the others take one or two more steps.
    alignas(64) T folded[kPoolingSegment];
    const bool done = shape_.is_maximum() && stride == 1;
    fold(rows.data(), window, (count - 1) * stride + 1, done ? result : folded);
    if (done) return true;
    T* const chosen = shape_.is_maximum() ? result : line;
    for (std::int64_t j = 0; j < count && stride != 1; ++j) chosen[j] = folded[j * stride];
    if (!shape_.is_maximum()) divide_along(stride == 1 ? folded : line, out, count, result);
    return true;
  }
  void divide_along(const T* sums, const Coords& out, std::int64_t count, T* result) const {
    const int last = shape_.spatial() - 1;
    kernel_.divide(sums, divisors_.data() + out[static_cast<std::size_t>(shape_.axis)],
                   static_cast<T>(shape_.divisor(out, last)), count, result);
  }

  PoolingShape shape_;
  WindowRows<T> kernel_;
  Dims strides_;
  std::vector<T> divisors_;  // of averages: last-axis factor, by position of y
  bool usable_;
};

}  // namespace ashlar::cpu
