// Rows of window maxima and averages.
#pragma once

#include <cmath>
#include <limits>

#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/divide.hpp"

namespace ashlar::cpu {

template <class T>
class PoolingWindows {
 public:
  PoolingWindows(const PoolingShape& shape, bool truncate)
      : shape_(shape), ops_(row_ops<T>()), divide_(divide_row<T>()), truncate_(truncate) {}

  // Computes the row of y at `out`, and the argmax positions if `where` is not null. `x` reads rows
  // of x.
  void row(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count, T* result,
           T* where) const {
    const T first = shape_.is_maximum() ? -std::numeric_limits<T>::infinity() : T{0};
    std::fill(result, result + count, first);
    if (where != nullptr) std::fill(where, where + count, T{-1});
    if (shape_.along())
      row_along(x, out, count, result, where);
    else
      row_across(x, out, count, result, where);
    if (!shape_.is_maximum()) average(out, count, result);
  }

 private:
  enum class Seen { element, zero, nothing };

  // The source of window position k of `out` on the first `axes` spatial axes.
  Seen look(const Coords& out, const Coords& k, int axes, Coords& source) const {
    source = out;
    Seen seen = Seen::element;
    for (int s = 0; s < axes; ++s) {
      const auto a = static_cast<std::size_t>(s + 2);
      std::int64_t i = shape_.start(s, out[a]) + k[static_cast<std::size_t>(s)];
      const std::int64_t extent = shape_.x[s + 2];
      if (i < 0 || i >= extent) {
        if (!shape_.is_maximum() || shape_.op.padding_mode == PaddingMode::neg_inf)
          return Seen::nothing;
        if (shape_.op.padding_mode == PaddingMode::zero) seen = Seen::zero;
        i = std::clamp<std::int64_t>(i, 0, extent - 1);
      }
      source[a] = i;
    }
    return seen;
  }

  void take(const T* x, std::int64_t position, std::int64_t count, T* result, T* where) const {
    if (where != nullptr)
      return ops_.argmax_into(x, static_cast<T>(position), count, result, where);
    ops_.fold_into(shape_.is_maximum() ? Fold::maximum : Fold::sum, Premap::identity, x, count,
                   result);
  }

  void row_across(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
                  T* result, T* where) const {
    alignas(64) T buffer[kPoolingRow];
    shape_.for_window(shape_.spatial(), [&](const Coords& k, std::int64_t position) {
      Coords source;
      const Seen seen = look(out, k, shape_.spatial(), source);
      if (seen == Seen::nothing) return;
      const T* row = buffer;
      if (seen == Seen::zero)
        std::fill(buffer, buffer + count, T{0});
      else
        row = x.view(source.data(), count, buffer);
      take(row, position, count, result, where);
    });
  }

  void row_along(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
                 T* result, T* where) const {
    const int last = shape_.spatial() - 1;
    const auto axis = static_cast<std::size_t>(shape_.axis);
    const std::int64_t window = shape_.op.window[last], stride = shape_.op.stride[last],
                       extent = shape_.x[shape_.axis];
    // Coordinates [begin, begin + length) of x, of which [low, high) are valid.
    const std::int64_t begin = shape_.start(last, out[axis]),
                       length = (count - 1) * stride + window;
    const std::int64_t low = std::clamp<std::int64_t>(begin, 0, extent),
                       high = std::clamp<std::int64_t>(begin + length, low, extent);
    alignas(64) T segment[kPoolingSegment];
    alignas(64) T folded[kPoolingSegment];
    const bool fold_first = where == nullptr;
    const T neutral = shape_.is_maximum() ? -std::numeric_limits<T>::infinity() : T{0};
    if (fold_first) std::fill(folded, folded + length, neutral);
    shape_.for_window(last, [&](const Coords& k, std::int64_t position) {
      Coords source;
      const Seen seen = look(out, k, last, source);
      if (seen == Seen::nothing) return;
      if (seen == Seen::zero) {
        std::fill(segment, segment + length, T{0});
      } else {
        source[axis] = low;
        std::fill(segment, segment + length, padding_value());
        x.load(source.data(), high - low, segment + (low - begin));
        if (shape_.is_maximum() && shape_.op.padding_mode == PaddingMode::edge) {
          std::fill(segment, segment + (low - begin), segment[low - begin]);
          std::fill(segment + (high - begin), segment + length, segment[high - begin - 1]);
        }
      }
      if (fold_first) return take(segment, 0, length, folded, nullptr);
      const bool padding_counts = shape_.op.padding_mode != PaddingMode::neg_inf;
      for (std::int64_t kw = 0; kw < window; ++kw) {
        // Results j whose window position kw is inside x.
        std::int64_t from = 0, to = count;
        if (!padding_counts) {
          while (from < to && begin + from * stride + kw < 0) ++from;
          while (to > from && begin + (to - 1) * stride + kw >= extent) --to;
        }
        take_strided(segment + from * stride + kw, stride, position * window + kw, to - from,
                     result + from, where + from);
      }
    });
    if (!fold_first) return;
    for (std::int64_t kw = 0; kw < window; ++kw)
      take_strided(folded + kw, stride, 0, count, result, nullptr);
  }

  void take_strided(const T* x, std::int64_t stride, std::int64_t position, std::int64_t count,
                    T* result, T* where) const {
    if (stride == 1) return take(x, position, count, result, where);
    alignas(64) T row[kPoolingRow];
    for (std::int64_t j = 0; j < count; ++j) row[j] = x[j * stride];
    take(row, position, count, result, where);
  }

  T padding_value() const {
    return shape_.is_maximum() && shape_.op.padding_mode == PaddingMode::neg_inf
               ? -std::numeric_limits<T>::infinity()
               : T{0};
  }

  void average(const Coords& out, std::int64_t count, T* result) const {
    const int last = shape_.spatial() - 1;
    const std::int64_t outer = shape_.divisor(out, shape_.along() ? last : shape_.spatial());
    if (!shape_.along() && !truncate_) return divide_(result, static_cast<T>(outer), count, result);
    for (std::int64_t j = 0; j < count; ++j) {
      std::int64_t divisor = outer;
      if (shape_.along())
        divisor *= shape_.op.mode == ResampleMode::avgpool_include_padding
                       ? shape_.op.window[last]
                       : shape_.covered(last, out[static_cast<std::size_t>(shape_.axis)] + j);
      result[j] /= static_cast<T>(divisor);
      if (truncate_) result[j] = std::trunc(result[j]);
    }
  }

  PoolingShape shape_;
  const RowOps<T>& ops_;
  DivideRow<T> divide_;
  bool truncate_;  // integer averages
};

}  // namespace ashlar::cpu
