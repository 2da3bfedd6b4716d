// Input transform: reads x or dy into V.
#pragma once

#include <cstring>

#include "cpu/conv/conv_rows.hpp"
#include "cpu/conv/winograd.hpp"
#include "cpu/kernels/transpose_tile.hpp"
#include "cpu/kernels/winograd.hpp"

namespace ashlar::cpu {

// V[point][tile][channel], with strides `point` and `tile` in elements.
struct TransformedTiles {
  float* first;
  std::int64_t point, tile;
};

class WinogradSource {
  // in_place: channels-last f32. pixels: NCHW f32. The others go through the row program.
  enum class Access : std::uint8_t { in_place, pixels, channel_rows, pixel_rows };

 public:
  using PatchTransform = decltype(WinogradKernel::input);

  WinogradSource(const PointwiseProgram& program, const PatchGrid& grid, PatchTransform transform,
                 std::int64_t lanes)
      : grid_(grid), transform_(transform), lanes_(lanes), transpose_(transpose_tile()) {
    const int last = program.space.rank() - 1;
    const bool along_channels = contiguous_views(program, 1) > contiguous_views(program, last);
    access_ = along_channels ? Access::channel_rows : Access::pixel_rows;
    if (program.is_plain_load() && program.steps[0].view.dtype == f32) {
      view_ = program.steps[0].view;
      if (view_.strides[1] == 1 && grid.channels % lanes == 0)
        access_ = Access::in_place;
      else if (view_.strides[last] == 1)
        access_ = Access::pixels;
    }
    if (access_ == Access::channel_rows) rows_ = RowProgram<float>(program, 1);
    if (access_ == Access::pixel_rows) rows_ = RowProgram<float>(program, last);
  }
  std::int64_t stage_size() const {
    const bool few = access_ == Access::pixels || access_ == Access::pixel_rows;
    return stage_floats(grid_.patch, grid_.step, few ? kPixelChunk : kChannelChunk);
  }

  class Bound {
   public:
    Bound(const WinogradSource& source, const KernelContext& context) : source_(source) {
      if (source.view_.present())
        memory_ =
            static_cast<const float*>(context.pointer(source.view_.tensor)) + source.view_.offset;
      if (source.access_ == Access::channel_rows || source.access_ == Access::pixel_rows)
        rows_ = source.rows_.bind(context);
    }
    // Transforms the tiles of the run, all channels of the group. `stage` has stage_size() floats.
    void transform(const TileRun& run, std::int64_t group, const TransformedTiles& to,
                   float* stage) const {
      if (source_.access_ == Access::in_place) return transform_in_place(run, group, to, stage);
      const PatchGrid& grid = source_.grid_;
      const bool by_pixels = source_.access_ != Access::channel_rows;
      const std::int64_t chunk = by_pixels ? kPixelChunk : kChannelChunk;
      const std::int64_t width = grid.step * (run.count - 1) + grid.patch;
      for (std::int64_t c = 0; c < grid.channels; c += chunk) {
        const std::int64_t channels = std::min(chunk, grid.channels - c);
        if (channels < chunk) std::fill_n(stage, grid.patch * width * chunk, 0.0f);
        for (std::int64_t i = 0; i < grid.patch; ++i) {
          float* row = stage + i * width * chunk;
          if (by_pixels)
            stage_pixels(run, i, group * grid.channels + c, channels, width, row);
          else
            stage_channels(run, i, group * grid.channels + c, channels, width, row);
        }
        for (std::int64_t t = 0; t < run.count; ++t)
          source_.transform_(stage + t * grid.step * chunk, width * chunk, chunk,
                             round_up(channels, source_.lanes_), to.first + t * to.tile + c,
                             to.point);
      }
    }

   private:
    std::int64_t top(const TileRun& run) const {
      return run.row * source_.grid_.step + source_.grid_.shift[0];
    }
    std::int64_t left(const TileRun& run) const {
      return run.column * source_.grid_.step + source_.grid_.shift[1];
    }
    const float* at(std::int64_t image, std::int64_t channel, std::int64_t row,
                    std::int64_t column) const {
      const Dims& strides = source_.view_.strides;
      return memory_ + image * strides[0] + channel * strides[1] + row * strides[2] +
             column * strides[3];
    }

    void transform_in_place(const TileRun& run, std::int64_t group, const TransformedTiles& to,
                            float* stage) const {
      const PatchGrid& grid = source_.grid_;
      const Dims& strides = source_.view_.strides;
      const std::int64_t n = grid.patch, y = top(run), channel = group * grid.channels;
      for (std::int64_t t = 0; t < run.count; ++t) {
        const std::int64_t x = left(run) + t * grid.step;
        float* v = to.first + t * to.tile;
        if (y >= 0 && x >= 0 && y + n <= grid.extent[0] && x + n <= grid.extent[1]) {
          source_.transform_(at(run.image, channel, y, x), strides[2], strides[3], grid.channels, v,
                             to.point);
          continue;
        }
        for (std::int64_t c = 0; c < grid.channels; c += kChannelChunk) {
          const std::int64_t channels = std::min(kChannelChunk, grid.channels - c);
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              float* pixel = stage + (i * n + j) * kChannelChunk;
              if (y + i >= 0 && x + j >= 0 && y + i < grid.extent[0] && x + j < grid.extent[1])
                std::memcpy(pixel, at(run.image, channel + c, y + i, x + j),
                            static_cast<std::size_t>(channels) * sizeof(float));
              else
                std::fill_n(pixel, channels, 0.0f);
            }
          source_.transform_(stage, n * kChannelChunk, kChannelChunk, channels, v + c, to.point);
        }
      }
    }

    // Stages row i of the run's patches as [pixel][channel], zero in the padding.
    void stage_channels(const TileRun& run, std::int64_t i, std::int64_t channel,
                        std::int64_t channels, std::int64_t width, float* row) const {
      const PatchGrid& grid = source_.grid_;
      const std::int64_t y = top(run) + i;
      for (std::int64_t j = 0; j < width; ++j, row += kChannelChunk) {
        const std::int64_t x = left(run) + j;
        if (y < 0 || x < 0 || y >= grid.extent[0] || x >= grid.extent[1]) {
          std::fill_n(row, channels, 0.0f);
        } else {
          const ConvCoords coords{run.image, channel, y, x};
          rows_.load(coords.data(), channels, row);
        }
      }
    }
    void stage_pixels(const TileRun& run, std::int64_t i, std::int64_t channel,
                      std::int64_t channels, std::int64_t width, float* row) const {
      const PatchGrid& grid = source_.grid_;
      const std::int64_t y = top(run) + i, x = left(run);
      const bool outside = y < 0 || y >= grid.extent[0];
      const std::int64_t first = std::clamp<std::int64_t>(-x, 0, width);
      const std::int64_t last =
          outside ? first : std::clamp<std::int64_t>(grid.extent[1] - x, first, width);
      std::fill_n(row, first * kPixelChunk, 0.0f);
      std::fill_n(row + last * kPixelChunk, (width - last) * kPixelChunk, 0.0f);
      if (first == last) return;
      float* inside = row + first * kPixelChunk;
      if (source_.access_ == Access::pixels)
        return source_.transpose_(at(run.image, channel, y, x + first), source_.view_.strides[1],
                                  channels, last - first, inside, kPixelChunk);
      alignas(64) float lines[kPixelChunk * kLine];
      for (std::int64_t c = 0; c < channels; ++c) {
        const ConvCoords coords{run.image, channel + c, y, x + first};
        rows_.load(coords.data(), last - first, lines + c * kLine);
      }
      source_.transpose_(lines, kLine, channels, last - first, inside, kPixelChunk);
    }

    static constexpr std::int64_t kLine = 4 * kLongestRun + 16;
    const WinogradSource& source_;
    const float* memory_ = nullptr;
    RowProgram<float>::Bound rows_;
  };

 private:
  PatchGrid grid_;
  PatchTransform transform_;
  std::int64_t lanes_;
  TransposeTile transpose_;
  Access access_;
  View view_;
  RowProgram<float> rows_;
};

}  // namespace ashlar::cpu
