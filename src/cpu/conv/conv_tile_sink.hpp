// Store of a block of pixels: directly to channels-last f32 with post-ops in registers, or through
// a buffer and the region's epilogue.
#pragma once

#include <optional>

#include "cpu/conv/conv_tile_source.hpp"
#include "cpu/conv/conv_tiles.hpp"

namespace ashlar::cpu {

class TileSink {
 public:
  TileSink(const Region& region, const ConvGeometry& geometry)
      : geometry_(geometry),
        columns_(region.epilogue.space[region.epilogue.space.rank() - 1]),
        transpose_(transpose_tile()) {
    const bool plain_sum = geometry.alpha == 1.0 && (z_of(region).empty() || geometry.beta == 0.0);
    if (plain_sum) post_ops_ = match_post_ops(region.epilogue, 1, f32);
    if (post_ops_ && post_ops_->result.dtype != f32) post_ops_.reset();
    if (post_ops_) return;
    PointwiseProgram epilogue = region.epilogue, z = z_of(region);
    const int last = epilogue.space.rank() - 1;
    along_channels_ = contiguous_views(epilogue, 1) >= contiguous_views(epilogue, last);
    const bool whole_rows =
        region.anchor_as<ConvForward>() || (geometry.stride[1] == 1 && geometry.stride[2] == 1);
    rows_joined_ = !along_channels_ && geometry.spatial > 1 && whole_rows &&
                   is_joinable(epilogue) && is_joinable(z);
    if (rows_joined_) {
      join(epilogue);
      join(z);
    }
    step_ =
        along_channels_ || region.anchor_as<ConvForward>() ? 1 : geometry.stride[kMaxSpatial - 1];
    if (plain_sum && rows_joined_ && step_ == 1 && epilogue.is_plain_store() &&
        epilogue.stores[0].view.dtype == f32 && epilogue.stores[0].view.strides[last] == 1)
      planes_ = epilogue.stores[0].view;
    if (plain_sum && along_channels_ && epilogue.is_plain_store() && step_of_pixels(region) == 1) {
      pixels_follow_ = epilogue.stores[0].view.strides[1] == 1;
      pixel_stride_ = epilogue.stores[0].view.strides[last];
    }
    store_ = ConvStore<float>(epilogue, z, geometry, along_channels_ ? 1 : last, step_);
  }

  bool is_direct() const { return post_ops_.has_value(); }
  const PostOpsPattern& post_ops() const { return *post_ops_; }
  // Whether buffered rows are transposed to run along pixels before they are stored.
  bool turns() const { return !post_ops_ && !along_channels_ && !planes_.present(); }

  class Bound {
   public:
    Bound(const TileSink& sink, const KernelContext& context) : sink_(sink), context_(context) {
      if (!sink.is_direct()) store_.emplace(sink.store_, context);
    }

    // First element of the block in a view of the epilogue; null if the view is absent.
    float* start(const View& view, const TilePhase& phase, const TileBlock& block,
                 std::int64_t channel) const {
      const ConvCoords coords = sink_.coords_of(phase, block, 0, 0, 0, channel);
      return element_at<float>(view, coords.data(), context_);
    }

    // Stores the results of a block, pixel x channel with pixel stride `width`, from `channel` on.
    // `turned` has room for as many.
    void store(const TilePhase& phase, const TileBlock& block, std::int64_t channel,
               std::int64_t count, float* values, std::int64_t width, float* turned) const {
      const std::int64_t pixels = block.pixels();
      if (sink_.pixels_follow_ && count == width && count == sink_.pixel_stride_) {
        const std::int64_t row_values = block.extent[2] * count;
        for (std::int64_t image = 0; image < block.images; ++image)
          for (std::int64_t row = 0; row < block.extent[1]; ++row, values += row_values)
            store_->row(sink_.coords_of(phase, block, image, row, 0, channel), 1, 1, row_values,
                        values);
        return;
      }
      if (sink_.along_channels_) {
        for_pixels(block, [&](std::int64_t image, std::int64_t row, std::int64_t column) {
          store_->row(sink_.coords_of(phase, block, image, row, column, channel), 1, 1, count,
                      values);
          values += width;
        });
        return;
      }
      if (sink_.planes_.present()) return store_planes(phase, block, channel, count, values, width);
      sink_.transpose_(values, width, pixels, count, turned, pixels);
      const std::int64_t rows = block.extent[1], columns = block.extent[2];
      const std::int64_t length = sink_.rows_joined_ ? rows * columns : columns;
      const int last = 1 + sink_.geometry_.spatial;
      for (std::int64_t c = 0; c < count; ++c)
        for (std::int64_t image = 0; image < block.images; ++image)
          for (std::int64_t done = 0; done < rows * columns; done += length, turned += length)
            store_->row(sink_.coords_of(phase, block, image, done / columns, 0, channel + c), last,
                        sink_.step_, length, turned);
    }

   private:
    // Few planes at a time: each is on its own page.
    void store_planes(const TilePhase& phase, const TileBlock& block, std::int64_t channel,
                      std::int64_t count, const float* values, std::int64_t width) const {
      constexpr std::int64_t kPlanes = 16;
      const std::int64_t pixels = block.extent[1] * block.extent[2];
      const std::int64_t plane = sink_.planes_.strides[1];
      for (std::int64_t image = 0; image < block.images; ++image, values += pixels * width) {
        const ConvCoords coords = sink_.coords_of(phase, block, image, 0, 0, channel);
        float* to = element_at<float>(sink_.planes_, coords.data(), context_);
        for (std::int64_t c = 0; c < count; c += kPlanes)
          sink_.transpose_(values + c, width, pixels, std::min(kPlanes, count - c), to + c * plane,
                           plane);
      }
    }
    template <class Visit>
    static void for_pixels(const TileBlock& block, Visit&& visit) {
      for (std::int64_t image = 0; image < block.images; ++image)
        for (std::int64_t row = 0; row < block.extent[1]; ++row)
          for (std::int64_t column = 0; column < block.extent[2]; ++column)
            visit(image, row, column);
    }
    const TileSink& sink_;
    const KernelContext& context_;
    std::optional<ConvStore<float>::Bound> store_;
  };

 private:
  // Step of the result's last axis per pixel.
  std::int64_t step_of_pixels(const Region& region) const {
    return region.anchor_as<ConvForward>() ? 1 : geometry_.stride[kMaxSpatial - 1];
  }
  // Whether the last two axes of every view are contiguous, or broadcast.
  static bool is_joinable(const PointwiseProgram& program) {
    const int last = program.space.rank() - 1;
    const auto joins = [&](const View& view) {
      return view.strides[last - 1] == view.strides[last] * program.space[last];
    };
    for (const auto& step : program.steps) {
      if (step.kind == PointwiseProgram::Step::Kind::load && !joins(step.view)) return false;
      if (step.kind == PointwiseProgram::Step::Kind::compute &&
          step.op.mode == PointwiseMode::gen_index)
        return false;
    }
    return std::all_of(program.stores.begin(), program.stores.end(),
                       [&](const auto& store) { return joins(store.view); });
  }
  static void join(PointwiseProgram& program) {
    if (program.empty()) return;
    const int last = program.space.rank() - 1;
    const auto join_dims = [&](Dims& dims) {
      dims[last] *= dims[last - 1];
      dims[last - 1] = 1;
    };
    for (auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) join_dims(step.view.dims);
    for (auto& store : program.stores) join_dims(store.view.dims);
    join_dims(program.space);
  }

  ConvCoords coords_of(const TilePhase& phase, const TileBlock& block, std::int64_t image,
                       std::int64_t row, std::int64_t column, std::int64_t channel) const {
    Spatial position = block.start;
    position[1] += row;
    position[2] += column;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      position[axis] = phase.grid.origin[axis] + position[axis] * phase.grid.step[axis];
    if (rows_joined_) {
      position[2] += position[1] * columns_;
      position[1] = 0;
    }
    ConvCoords coords;
    geometry_.put(block.image + image, channel, position, coords.data());
    return coords;
  }

  const ConvGeometry& geometry_;
  std::int64_t columns_;  // columns of the result
  std::optional<PostOpsPattern> post_ops_;
  bool along_channels_ = true;
  bool rows_joined_ = false;
  View planes_;  // dense f32 planes, stored by transposing
  // A plain store, whose pixel row is contiguous if a pixel has this many channels.
  bool pixels_follow_ = false;
  std::int64_t pixel_stride_ = 0;
  std::int64_t step_ = 1;
  ConvStore<float> store_;
  TransposeTile transpose_;
};

}  // namespace ashlar::cpu
