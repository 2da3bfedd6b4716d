// Pooling of pixels whose channels lie together: all rows a window covers are folded at once.
#pragma once

#include <array>

#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/window_rows.hpp"

namespace ashlar::cpu {

template <class T>
class PoolingPixels {
 public:
  // `x`: the program that reads x. Integer averages are not for this.
  PoolingPixels(const PoolingShape& shape, const PointwiseProgram& x, bool truncates)
      : shape_(shape), kernel_(window_rows<T>()) {
    std::int64_t positions = 1;
    for (std::int64_t extent : shape.op.window) positions = checked_mul(positions, extent);
    usable_ = !shape.along() && shape.spatial() <= kAxes && !truncates && positions <= kMostRows &&
              x.is_plain_load();
    if (usable_) strides_ = x.steps[0].view.strides;
  }

  // The row of y at `out`; false where it has to be made in another way: padding takes part, or x
  // has to be converted.
  bool row(const typename RowProgram<T>::Bound& x, const Coords& out, std::int64_t count,
           T* result) const {
    if (!usable_ || !x.is_memory()) return false;
    // The window as a box of x, on three axes.
    std::array<std::int64_t, kAxes> extent = {1, 1, 1}, stride = {0, 0, 0};
    Coords first = out;
    bool whole = true;
    for (int s = 0; s < shape_.spatial(); ++s) {
      const auto axis = static_cast<std::size_t>(s + 2);
      const auto a = static_cast<std::size_t>(kAxes - shape_.spatial() + s);
      const std::int64_t begin = shape_.start(s, out[axis]), end = begin + shape_.op.window[s];
      first[axis] = std::max<std::int64_t>(begin, 0);
      extent[a] = std::min(end, shape_.x[s + 2]) - first[axis];
      stride[a] = strides_[s + 2];
      whole &= extent[a] == shape_.op.window[s];
      if (extent[a] <= 0) return false;
    }
    if (!whole && shape_.is_maximum() && shape_.op.padding_mode != PaddingMode::neg_inf)
      return false;
    std::array<const T*, kMostRows> rows;
    const T* origin = x.view(first.data(), count, nullptr);
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < extent[0]; ++i)
      for (std::int64_t j = 0; j < extent[1]; ++j)
        for (std::int64_t k = 0; k < extent[2]; ++k)
          rows[static_cast<std::size_t>(n++)] =
              origin + i * stride[0] + j * stride[1] + k * stride[2];
    if (shape_.is_maximum())
      kernel_.maximum(rows.data(), n, count, result);
    else
      kernel_.average(rows.data(), n, static_cast<T>(shape_.divisor(out, shape_.spatial())), count,
                      result);
    return true;
  }

 private:
  static constexpr int kAxes = 3;
  static constexpr std::int64_t kMostRows = 64;
  PoolingShape shape_;
  WindowRows<T> kernel_;
  Dims strides_;
  bool usable_;
};

}  // namespace ashlar::cpu
