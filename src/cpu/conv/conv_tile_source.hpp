// Rows of a convolution's source as channels-last floats, for staging blocks of pixels.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/conv/conv_rows.hpp"
#include "cpu/conv/conv_tiles.hpp"
#include "cpu/gemm/post_ops.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/transpose_tile.hpp"

namespace ashlar::cpu {

// Strides of a view [a, b, spatial...].
struct ViewStrides {
  std::int64_t a, b;
  Spatial axis{};

  ViewStrides(const View& view, int spatial) : a(view.strides[0]), b(view.strides[1]) {
    for (int i = 0; i < spatial; ++i)
      axis[static_cast<std::size_t>(kMaxSpatial - spatial + i)] = view.strides[2 + i];
  }
};

class TileSource {
 public:
  // Rows take every `step`-th column; `channels` are those of a group.
  TileSource(const PointwiseProgram& program, const ConvGeometry& geometry, const Spatial& extents,
             std::int64_t channels, std::int64_t step)
      : geometry_(geometry),
        extents_(extents),
        channels_(channels),
        step_(step),
        plain_(program.is_plain_load()),
        transpose_(transpose_tile()) {
    const int last = program.space.rank() - 1;
    along_channels_ = contiguous_views(program, 1) > contiguous_views(program, last) ||
                      (channels > 1 && program.space[last] == 1);
    if (plain_) {
      view_ = program.steps[0].view;
      plain_ = along_channels_ ? view_.strides[1] == 1
                               : view_.dtype == f32 && view_.strides[last] * step == 1;
      load_ = load_row<float>(view_.dtype);
    }
    rows_ = along_channels_ ? RowProgram<float>(program, 1)
                            : RowProgram<float>(program, last, nullptr, step);
  }

  class Bound {
   public:
    Bound(const TileSource& source, const KernelContext& context)
        : source_(source),
          data_(source.plain_ ? context.pointer(source.view_.tensor) : nullptr),
          rows_(source.rows_.bind(context)) {}

    // Loads `count` pixels from `position` on, zeros in the padding.
    void row(std::int64_t image, std::int64_t group, Spatial position, std::int64_t count,
             float* destination) const {
      const std::int64_t channels = source_.channels_, step = source_.step_;
      constexpr std::size_t kLast = kMaxSpatial - 1;
      bool inside = true;
      for (std::size_t axis = 0; axis < kLast; ++axis)
        inside = inside && position[axis] >= 0 && position[axis] < source_.extents_[axis];
      const std::int64_t from = position[kLast], room = source_.extents_[kLast] - from;
      const std::int64_t first = !inside     ? count
                                 : from >= 0 ? 0
                                             : std::min(count, (-from + step - 1) / step);
      const std::int64_t end =
          std::clamp(room <= 0 ? first : (room + step - 1) / step, first, count);
      std::fill_n(destination, first * channels, 0.0f);
      position[kLast] += first * step;
      if (first < end)
        load(image, group * channels, position, end - first, destination + first * channels);
      std::fill_n(destination + end * channels, (count - end) * channels, 0.0f);
    }

    // The row in memory if it is channels-last f32, with its pixel stride `distance`; else null.
    const float* in_memory(std::int64_t image, std::int64_t group, const Spatial& position,
                           std::int64_t& distance) const {
      const View& view = source_.view_;
      if (!source_.plain_ || !source_.along_channels_ || view.dtype != f32) return nullptr;
      distance = view.strides[view.strides.rank() - 1] * source_.step_;
      ConvCoords coords;
      source_.geometry_.put(image, group * source_.channels_, position, coords.data());
      std::int64_t index = view.offset;
      for (int axis = 0; axis < view.strides.rank(); ++axis)
        index += coords[static_cast<std::size_t>(axis)] * view.strides[axis];
      return static_cast<const float*>(data_) + index;
    }

   private:
    void load(std::int64_t image, std::int64_t channel, const Spatial& position, std::int64_t count,
              float* destination) const {
      ConvCoords coords;
      source_.geometry_.put(image, channel, position, coords.data());
      if (source_.plain_) return load_plain(coords, count, destination);
      const std::int64_t channels = source_.channels_;
      const auto last = static_cast<std::size_t>(1 + source_.geometry_.spatial);
      if (source_.along_channels_) {
        for (std::int64_t i = 0; i < count; ++i, coords[last] += source_.step_)
          rows_.load(coords.data(), channels, destination + i * channels);
        return;
      }
      constexpr std::int64_t kChannels = 16, kPixels = 128;
      alignas(64) float chunk[kChannels * kPixels];
      const std::int64_t start = coords[last];
      for (std::int64_t c = 0; c < channels; c += kChannels)
        for (std::int64_t p = 0; p < count; p += kPixels) {
          const std::int64_t there = std::min(kChannels, channels - c),
                             pixels = std::min(kPixels, count - p);
          coords[last] = start + p * source_.step_;
          for (std::int64_t i = 0; i < there; ++i) {
            coords[1] = channel + c + i;
            rows_.load(coords.data(), pixels, chunk + i * kPixels);
          }
          source_.transpose_(chunk, kPixels, there, pixels, destination + p * channels + c,
                             channels);
        }
    }

    void load_plain(const ConvCoords& coords, std::int64_t count, float* destination) const {
      const View& view = source_.view_;
      std::int64_t index = view.offset;
      for (int axis = 0; axis < view.strides.rank(); ++axis)
        index += coords[static_cast<std::size_t>(axis)] * view.strides[axis];
      const std::int64_t channels = source_.channels_,
                         pixel = view.strides[view.strides.rank() - 1] * source_.step_;
      if (source_.along_channels_ && pixel == channels)
        return source_.load_(data_, index, 1, count * channels, destination);
      if (source_.along_channels_) {
        for (std::int64_t i = 0; i < count; ++i)
          source_.load_(data_, index + i * pixel, 1, channels, destination + i * channels);
        return;
      }
      source_.transpose_(static_cast<const float*>(data_) + index, view.strides[1], channels, count,
                         destination, channels);
    }

    const TileSource& source_;
    const void* data_;
    RowProgram<float>::Bound rows_;
  };

 private:
  const ConvGeometry& geometry_;
  Spatial extents_;
  std::int64_t channels_, step_;
  bool plain_;  // a plain load, by `load_` or a transpose
  bool along_channels_;
  View view_;
  LoadRow<float> load_ = nullptr;
  RowProgram<float> rows_;
  TransposeTile transpose_;
};

// Stages the source rows of a block of pixels (im2row staging without duplication), padded, with
// the strides of `phase`. `part`: group or panel of channels.
inline void stage_block(const TilePhase& phase, const TileBlock& block, std::int64_t part,
                        const TileSource::Bound& source, float* memory) {
  const std::int64_t planes = phase.staged_extent(0, 1),
                     rows = phase.staged_extent(1, block.extent[1]),
                     columns = phase.staged_extent(2, block.extent[2]);
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t plane = 0; plane < planes; ++plane)
      for (std::int64_t row = 0; row < rows; ++row)
        source.row(
            block.image + image, part,
            {phase.source_at(block, 0, plane), phase.source_at(block, 1, row),
             phase.source_at(block, 2, 0)},
            columns,
            memory + image * phase.at.image + plane * phase.at.axis[0] + row * phase.at.axis[1]);
}

}  // namespace ashlar::cpu
