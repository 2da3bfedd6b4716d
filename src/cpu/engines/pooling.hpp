// Shared by pooling forward and backward.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "cpu/operand.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kPoolingRow = 1024;      // results at once
inline constexpr std::int64_t kPoolingSegment = 4096;  // maximum elements of x read for them

// Window position k of output o reads element o * stride - padding + k of x, on each spatial axis.
struct PoolingShape {
  ResampleAttributes op;
  Dims x, y;
  int axis = 0;  // row axis: 0 or 1 if rows cross windows, the last if windows lie along rows

  bool along() const { return axis >= 2; }
  int spatial() const { return x.rank() - 2; }
  bool is_maximum() const { return op.mode == ResampleMode::maxpool; }
  std::int64_t start(int s, std::int64_t o) const { return o * op.stride[s] - op.padding[s]; }
  // Number of elements of x that window o covers on spatial axis s.
  std::int64_t covered(int s, std::int64_t o) const {
    const std::int64_t first = start(s, o);
    return std::min(first + op.window[s], x[s + 2]) - std::max<std::int64_t>(first, 0);
  }
  // Divisor of an average, from the first `axes` spatial axes.
  std::int64_t divisor(const Coords& out, int axes) const {
    std::int64_t count = 1;
    for (int s = 0; s < axes; ++s)
      count *= op.mode == ResampleMode::avgpool_include_padding
                   ? op.window[s]
                   : covered(s, out[static_cast<std::size_t>(s + 2)]);
    return count;
  }
  // Calls body(k, position) for every position of the first `axes` axes of the window; `position`
  // is row-major.
  template <class Body>
  void for_window(int axes, Body&& body) const {
    Coords k{};
    std::int64_t count = 1;
    for (int s = 0; s < axes; ++s) count *= op.window[s];
    for (std::int64_t position = 0; position < count; ++position) {
      body(k, position);
      for (int s = axes - 1; s >= 0; --s) {
        if (++k[static_cast<std::size_t>(s)] < op.window[s]) break;
        k[static_cast<std::size_t>(s)] = 0;
      }
    }
  }
};

// Loop over the rows of a tensor: all coordinates but the row axis, which is split into chunks of
// `length`.
struct RowLoop {
  Dims dims;
  int axis = 0;
  std::int64_t length = 1;

  std::int64_t chunks() const { return (dims[axis] + length - 1) / length; }
  std::int64_t count() const {
    Dims rows = dims;
    rows[axis] = chunks();
    return element_count(rows);
  }
  // Coordinates of the first element of row `row`; returns its length.
  std::int64_t locate(std::int64_t row, Coords& coords) const {
    for (int a = dims.rank() - 1; a >= 0; --a) {
      const std::int64_t extent = a == axis ? chunks() : dims[a];
      coords[static_cast<std::size_t>(a)] = row % extent * (a == axis ? length : 1);
      row /= extent;
    }
    return std::min(length, dims[axis] - coords[static_cast<std::size_t>(axis)]);
  }
};

// Results of one row whose windows fit the segment of x.
std::int64_t pooling_row_length(const PoolingShape& shape);
PoolingShape pooling_forward_shape(const Region& region);
PoolingShape pooling_backward_shape(const Region& region);
std::unique_ptr<Kernel> build_pooling_forward(const Region& region);
std::unique_ptr<Kernel> build_pooling_backward(const Region& region);

}  // namespace ashlar::cpu
