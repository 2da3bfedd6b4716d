// Extents of the scale tensor of a block-scaled tensor, and the index of a block's scale in it.
#pragma once

#include <ashlar/ops/quantization.hpp>

#include "base/checked.hpp"

namespace ashlar {

// Extents of the tiles of ScaleLayout::f8_128x4.
inline constexpr std::int64_t kScaleTileRows = 128, kScaleTileColumns = 4;

class BlockScaleShape {
 public:
  // `op` as inference leaves it: one block extent per axis of x.
  BlockScaleShape(const Dims& x, const BlockScaleAttributes& op)
      : tiled_(op.scale_layout == ScaleLayout::f8_128x4) {
    const int rank = x.rank();
    for (int axis = 0; axis < rank; ++axis) {
      const std::int64_t block = op.block_size[axis];
      blocks_.push_back(x[axis] / block + (x[axis] % block != 0));
    }
    stored_ = blocks_;
    if (!tiled_) return;
    column_axis_ = op.block_size[rank - 1] > 1 ? rank - 1 : rank - 2;
    row_axis_ = 2 * rank - 3 - column_axis_;
    stored_[row_axis_] = padded(blocks_[row_axis_], kScaleTileRows);
    stored_[column_axis_] = padded(blocks_[column_axis_], kScaleTileColumns);
  }

  const Dims& blocks() const { return blocks_; }  // along each axis
  const Dims& stored() const { return stored_; }  // extents of the tensor of scales
  bool tiled() const { return tiled_; }
  // Axes of the 128 x 4 tiles; 0 for the linear layout.
  int row_axis() const { return row_axis_; }
  int column_axis() const { return column_axis_; }

  // The index in the scale tensor of a block's scale. Tiles are stored consecutively in row-major
  // order; the last two axes index the elements of that sequence.
  Dims place(const Dims& block) const {
    if (!tiled_) return block;
    const std::int64_t r = block[row_axis_], c = block[column_axis_];
    const std::int64_t tile =
        r / kScaleTileRows * (stored_[column_axis_] / kScaleTileColumns) + c / kScaleTileColumns;
    const std::int64_t position = tile * kScaleTileRows * kScaleTileColumns + 16 * (r % 32) +
                                  4 * (r % kScaleTileRows / 32) + c % kScaleTileColumns;
    Dims index = block;
    const int last = block.rank() - 1;
    index[last - 1] = position / stored_[last];
    index[last] = position % stored_[last];
    return index;
  }

 private:
  static std::int64_t padded(std::int64_t extent, std::int64_t unit) {
    return checked_add(extent, unit - 1) / unit * unit;
  }
  Dims blocks_, stored_;
  bool tiled_;
  int row_axis_ = 0, column_axis_ = 0;
};

}  // namespace ashlar
