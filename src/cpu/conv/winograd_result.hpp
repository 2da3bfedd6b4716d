// Output transform: writes y or dx from M.
#pragma once

#include <optional>

#include "cpu/conv/channel_post_ops.hpp"
#include "cpu/conv/conv_rows.hpp"
#include "cpu/conv/winograd.hpp"
#include "cpu/kernels/transpose_tile.hpp"
#include "cpu/kernels/winograd.hpp"

namespace ashlar::cpu {

class WinogradResult {
  // in_place: channels-last f32, with an epilogue that fits registers. pixels: the same in NCHW.
  // The others go through the region's epilogue.
  enum class Access : std::uint8_t { in_place, pixels, channel_rows, pixel_rows };

 public:
  WinogradResult(const Region& region, const ConvGeometry& geometry, const WinogradShape& shape,
                 const WinogradKernel& kernel)
      : shape_(shape), kernel_(kernel), transpose_(transpose_tile()) {
    const PointwiseProgram& epilogue = region.epilogue;
    const int last = epilogue.space.rank() - 1;
    const PointwiseProgram& z = z_of(region);
    if (z.empty() || geometry.beta == 0.0)
      post_ops_ = ChannelPostOps<float>::of(epilogue, 1, geometry.alpha);
    const auto together = [&](int axis) {
      return post_ops_ && post_ops_->result().strides[axis] == 1 &&
             (post_ops_->residual() == nullptr || post_ops_->residual()->strides[axis] == 1);
    };
    if (together(1) && shape.results % kernel.lanes == 0)
      access_ = Access::in_place;
    else if (together(last))
      access_ = Access::pixels;
    else if (contiguous_views(epilogue, 1) > contiguous_views(epilogue, last))
      access_ = Access::channel_rows;
    else
      access_ = Access::pixel_rows;
    if (access_ == Access::in_place) {
      result_tiles_ = tile_offsets(post_ops_->result());
      if (post_ops_->residual() != nullptr) residual_tiles_ = tile_offsets(*post_ops_->residual());
    }
    if (access_ == Access::channel_rows) rows_ = ConvStore<float>(epilogue, z, geometry, 1, 1);
    if (access_ == Access::pixel_rows) rows_ = ConvStore<float>(epilogue, z, geometry, last, 1);
  }
  std::int64_t stage_size() const {
    return access_ == Access::in_place
               ? 0
               : stage_floats(shape_.outputs, shape_.outputs,
                              access_ == Access::channel_rows ? kChannelChunk : kPixelChunk);
  }
  // Floats for the post-ops of all channels, filled once per run.
  std::int64_t post_ops_size() const {
    return finishes_in_registers() ? 2 * round_up(shape_.results * shape_.groups, 16) : 0;
  }

  // One pixel of every tile: its first channel and the offsets of the tiles.
  struct Pixels {
    const float* first = nullptr;
    const std::int64_t* tiles = nullptr;
  };

  class Bound {
   public:
    // `post_ops` has post_ops_size() floats.
    Bound(const WinogradResult& result, const KernelContext& context, float* post_ops)
        : result_(result) {
      if (!result.finishes_in_registers()) {
        rows_.emplace(result.rows_, context);
        return;
      }
      const std::int64_t channels = result.shape_.results * result.shape_.groups;
      factor_ = post_ops;
      offset_ = post_ops + result.post_ops_size() / 2;
      result.post_ops_->load(context, channels, post_ops, post_ops + result.post_ops_size() / 2);
      const View& view = result.post_ops_->result();
      memory_ = static_cast<float*>(context.pointer(view.tensor)) + view.offset;
      if (const View* residual = result.post_ops_->residual())
        residual_ = static_cast<const float*>(context.pointer(residual->tensor)) + residual->offset;
    }
    // Writes channels [channel, channel + channels) of the group for the tiles of the run from
    // M[point][tile][channel]. `stage` has stage_size() floats.
    void write(const TileRun& run, std::int64_t group, std::int64_t channel, std::int64_t channels,
               const float* sums, std::int64_t point, std::int64_t tile, float* stage) const {
      const WinogradShape& shape = result_.shape_;
      const std::int64_t m = shape.outputs, first = group * shape.results + channel;
      const std::int64_t rows = std::min(m, shape.result[0] - run.row * m);
      const std::int64_t width = std::min(m * run.count, shape.result[1] - run.column * m);
      if (result_.access_ == Access::in_place) {
        for (std::int64_t t = 0; t < run.count; ++t)
          write_tile(run, t, first, channels, rows, std::min(m, width - t * m), sums + t * tile,
                     point);
        return;
      }
      const std::int64_t chunk =
          result_.access_ == Access::channel_rows ? kChannelChunk : kPixelChunk;
      const std::int64_t staged = m * kLongestRun;  // pixels per staged row
      for (std::int64_t c = 0; c < channels; c += chunk) {
        const std::int64_t count = std::min(chunk, channels - c);
        for (std::int64_t t = 0; t < run.count; ++t)
          result_.kernel_.output(sums + t * tile + c, point, round_up(count, result_.kernel_.lanes),
                                 {stage + t * m * chunk, staged * chunk, chunk, m, m, nullptr});
        for (std::int64_t i = 0; i < rows; ++i) {
          float* row = stage + i * staged * chunk;
          if (result_.access_ == Access::channel_rows)
            write_channels(run, i, first + c, count, width, row);
          else
            write_pixels(run, i, first + c, count, width, row, stage + m * staged * chunk);
        }
      }
    }

    // Prefetch targets: what write() will read and write of the tiles from `tile` on, pixel by
    // pixel; number 0 is the first pixel of the residual, or of the result. Empty past the last, or
    // if rows are staged.
    Pixels pixels(std::int64_t number, std::int64_t group, std::int64_t channel,
                  std::int64_t tile) const {
      if (result_.access_ != Access::in_place) return {};
      const std::int64_t m = result_.shape_.outputs;
      const bool adds = residual_ != nullptr && number < m * m;
      if (!adds && residual_ != nullptr) number -= m * m;
      if (number >= m * m) return {};
      const View& view = adds ? *result_.post_ops_->residual() : result_.post_ops_->result();
      const auto& tiles = adds ? result_.residual_tiles_ : result_.result_tiles_;
      return {(adds ? residual_ : memory_) +
                  at(view, 0, group * result_.shape_.results + channel, number / m, number % m),
              tiles.data() + tile};
    }

   private:
    static std::int64_t at(const View& view, std::int64_t image, std::int64_t channel,
                           std::int64_t row, std::int64_t column) {
      return image * view.strides[0] + channel * view.strides[1] + row * view.strides[2] +
             column * view.strides[3];
    }
    WinogradPostOps post_ops_at(const TileRun& run, std::int64_t channel, std::int64_t row,
                                std::int64_t column) const {
      WinogradPostOps post_ops{.factor = factor_ + channel, .offset = offset_ + channel};
      post_ops.low = result_.post_ops_->low();
      post_ops.high = result_.post_ops_->high();
      if (const View* residual = result_.post_ops_->residual()) {
        post_ops.residual = residual_ + at(*residual, run.image, channel, row, column);
        post_ops.residual_row = residual->strides[2];
        post_ops.residual_pixel = residual->strides[3];
      }
      return post_ops;
    }
    void write_tile(const TileRun& run, std::int64_t t, std::int64_t channel, std::int64_t channels,
                    std::int64_t rows, std::int64_t columns, const float* sums,
                    std::int64_t point) const {
      const std::int64_t m = result_.shape_.outputs;
      const View& view = result_.post_ops_->result();
      const std::int64_t y = run.row * m, x = (run.column + t) * m;
      const WinogradPostOps post_ops = post_ops_at(run, channel, y, x);
      const WinogradTile tile{memory_ + at(view, run.image, channel, y, x),
                              view.strides[2],
                              view.strides[3],
                              rows,
                              columns,
                              result_.post_ops_->does_nothing() ? nullptr : &post_ops};
      result_.kernel_.output(sums, point, channels, tile);
    }
    void write_channels(const TileRun& run, std::int64_t i, std::int64_t channel,
                        std::int64_t channels, std::int64_t width, float* row) const {
      const std::int64_t m = result_.shape_.outputs;
      for (std::int64_t j = 0; j < width; ++j, row += kChannelChunk)
        rows_->row({run.image, channel, run.row * m + i, run.column * m + j}, 1, 1, channels, row);
    }
    void write_pixels(const TileRun& run, std::int64_t i, std::int64_t channel,
                      std::int64_t channels, std::int64_t width, const float* row,
                      float* lines) const {
      const std::int64_t m = result_.shape_.outputs, line = m * kLongestRun;
      // Whole vectors of pixels: the stage has room for the longest run.
      result_.transpose_(row, kPixelChunk, std::min(line, round_up(width, kPixelChunk)),
                         kPixelChunk, lines, line);
      const std::int64_t y = run.row * m + i, x = run.column * m;
      for (std::int64_t c = 0; c < channels; ++c, lines += line) {
        if (result_.access_ == Access::pixel_rows) {
          rows_->row({run.image, channel + c, y, x}, 3, 1, width, lines);
          continue;
        }
        const View& view = result_.post_ops_->result();
        result_.kernel_.post_ops_row(lines, width, post_ops_at(run, channel + c, y, x),
                                     memory_ + at(view, run.image, channel + c, y, x));
      }
    }

    const WinogradResult& result_;
    std::optional<ConvStore<float>::Bound> rows_;
    float* memory_ = nullptr;
    const float* residual_ = nullptr;
    const float *factor_ = nullptr, *offset_ = nullptr;
  };

 private:
  std::vector<std::int64_t> tile_offsets(const View& view) const {
    std::vector<std::int64_t> offsets;
    for (std::int64_t image = 0; image < shape_.images; ++image)
      for (std::int64_t row = 0; row < shape_.tiles[0]; ++row)
        for (std::int64_t column = 0; column < shape_.tiles[1]; ++column)
          offsets.push_back(image * view.strides[0] + row * shape_.outputs * view.strides[2] +
                            column * shape_.outputs * view.strides[3]);
    return offsets;
  }
  bool finishes_in_registers() const {
    return access_ == Access::in_place || access_ == Access::pixels;
  }

  WinogradShape shape_;
  const WinogradKernel& kernel_;
  TransposeTile transpose_;
  Access access_;
  std::optional<ChannelPostOps<float>> post_ops_;
  std::vector<std::int64_t> result_tiles_, residual_tiles_;  // tile offsets, if in place
  ConvStore<float> rows_;
};

}  // namespace ashlar::cpu
