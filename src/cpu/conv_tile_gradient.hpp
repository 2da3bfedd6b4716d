// The gradient of a filter on tiles of filters by channels: dw = dy transposed times the source,
// summed over pixels. Blocks of pixels pass one after another; dy lies in panels as wide as a tile
// has rows, the source in rows that all taps read where they lie.
#pragma once

#include <cstring>

#include "cpu/conv_tile_source.hpp"
#include "cpu/conv_tiles.hpp"
#include "cpu/kernels/row_product.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// One cut for the cost estimate and for the kernel.
struct TileGradientWork {
  ConvGeometry geometry;
  std::int64_t width;   // channels staged together
  std::int64_t panels;  // of the channels
  std::int64_t threads;
  TilePhase phase;
  std::int64_t splits = 1, column_parts = 1, filter_parts = 1;  // tasks of a group
  bool is_direct;                                               // sums go straight to dw

  TileGradientWork(const Region& region, const DeviceProps& device)
      : geometry(*region.anchor),
        width(geometry.channels % kMostProductColumns == 0 ? kMostProductColumns
                                                           : geometry.channels),
        panels(geometry.channels / width),
        threads(std::max(device.compute_units, 1)),
        phase(geometry.forward_phase(), problem(device)) {
    const std::int64_t blocks = phase.block_count();
    if (geometry.groups < threads) {
      if (by_pixels(device))
        splits = std::min(threads, blocks);
      else if (panels >= threads)
        column_parts = threads;
      else if (filter_tiles() >= threads)
        filter_parts = threads;
      else
        splits = std::min(threads, blocks);
    }
    is_direct = splits == 1 && stores_sums(region);
  }
  TileGradientWork(const TileGradientWork&) = delete;

  std::int64_t columns() const { return geometry.tap_count() * geometry.channels; }
  std::int64_t padded_columns() const {
    constexpr std::int64_t kVector = 16;
    return phase.segments * panels * round_up(phase.run * width, kVector);
  }
  std::int64_t filter_tiles() const { return divide_up(geometry.filters, kMostProductRows); }
  std::int64_t part_tiles() const { return divide_up(filter_tiles(), filter_parts); }
  // Of scratch, per thread: the staged source, dy's panels, a row of dy.
  std::int64_t staged_elements() const {
    return round_up(phase.staged_elements() + kMostProductColumns, kVectorLine);
  }
  std::int64_t packed_elements() const {
    return round_up(part_tiles() * kMostProductRows * phase.most.pixels(), kVectorLine);
  }
  std::int64_t row_elements() const {
    return round_up(phase.most.extent[2] * geometry.filters, kVectorLine);
  }
  std::int64_t per_thread() const { return staged_elements() + packed_elements() + row_elements(); }
  std::int64_t partial_elements() const {
    return is_direct ? 0 : splits * geometry.groups * geometry.filters * columns();
  }
  std::int64_t scratch_bytes() const {
    return kFloat * (threads * per_thread() + partial_elements());
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);
  static constexpr std::int64_t kVectorLine = kWorkspaceAlignment / kFloat;

  bool by_pixels(const DeviceProps& device) const {
    return geometry.filters * columns() * kFloat <= device.l2_bytes / 2;
  }
  TileProblem problem(const DeviceProps& device) const {
    TileProblem problem;
    problem.channels = width;
    problem.source = geometry.x;
    problem.planes = geometry.groups;
    problem.block_bytes = std::max<std::int64_t>(device.l2_bytes / 2, 64 * 1024);
    problem.pixel_bytes = geometry.filters * kFloat;
    problem.threads = by_pixels(device) ? threads : 1;
    return problem;
  }
  // Whether dw holds the sums as they are, tap by tap in the order they are computed.
  bool stores_sums(const Region& region) const {
    if (geometry.alpha != 1.0 || (!z_of(region).empty() && geometry.beta != 0.0)) return false;
    const auto finish = match_finish(region.epilogue, 1, f32);
    if (!finish || !finish->only_stores() || finish->result.dtype != f32) return false;
    const ViewDistances distances(finish->result, geometry.spatial);
    std::int64_t expected = 0;
    for (const ConvTap& tap : phase.grid.taps) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
        offset += tap.stored[axis] * distances.axis[axis];
      if (offset != expected) return false;
      expected += geometry.channels;
    }
    return true;
  }
};

class TileGradientKernel final : public Kernel {
 public:
  TileGradientKernel(const Region& region, const DeviceProps& device)
      : work_(region, device),
        product_(row_product<float>()),
        x_(region.prologues[ConvBackwardFilter::x], work_.geometry, work_.geometry.x, work_.width,
           work_.phase.staged_step(kMaxSpatial - 1)),
        dy_(region.prologues[ConvBackwardFilter::dy], work_.geometry, work_.geometry.y,
            work_.geometry.filters, 1),
        store_(region.epilogue, z_of(region), work_.geometry, 1, 1),
        result_(region.epilogue.stores[0].view) {
    cut_columns();
    lay_out_rows();
    for (std::size_t i = 0; i < a_rows_.size(); ++i) {
      a_rows_[i] = static_cast<std::int64_t>(i);
      c_rows_[i] =
          static_cast<std::int64_t>(i) * (work_.is_direct ? result_.strides[0] : work_.columns());
    }
    const auto bytes = static_cast<std::int64_t>(sizeof(float));
    blocks_ = scratch_book_.add("blocks", work_.threads * work_.per_thread() * bytes);
    partial_ = scratch_book_.add("partial sums", work_.partial_elements() * bytes);
  }

  void run(const KernelContext& context) const override {
    const std::int64_t parts = work_.column_parts * work_.filter_parts * work_.splits;
    const std::int64_t tasks = work_.geometry.groups * parts;
    float* scratch = context.scratch<float>(scratch_book_, blocks_);
    const TileSource::Bound x(x_, context), dy(dy_, context);
    // No more threads than have scratch.
    parallel_for(tasks, divide_up(tasks, work_.threads),
                 [&](std::int64_t begin, std::int64_t end, int thread) {
                   float* memory = scratch + thread * work_.per_thread();
                   for (std::int64_t task = begin; task < end; ++task)
                     run_task(task, x, dy, memory, context);
                 });
    if (!work_.is_direct) store(context);
  }

 private:
  // Columns of dw that a product computes at once.
  struct ColumnTile {
    std::int64_t b, columns, c;  // offsets in what is staged and in a row of dw
  };
  // Filters, panels of channels and blocks of pixels of a task.
  struct Task {
    std::int64_t group, split;
    std::int64_t tile, tiles, panel, panels, block, blocks;  // first and past the last
  };

  void cut_columns() {
    const TilePhase& phase = work_.phase;
    // Channels in panels: every tap has columns of its own.
    const bool apart = work_.panels > 1;
    const std::int64_t taps = apart ? 1 : phase.run, length = taps * work_.width;
    for (std::int64_t tap = 0; tap < work_.geometry.tap_count(); tap += taps) {
      const std::int64_t start = phase.segment_offsets[static_cast<std::size_t>(tap / phase.run)] +
                                 tap % phase.run * work_.width;
      for (std::int64_t j = 0; j < length; j += product_.columns)
        tiles_.push_back(
            {start + j, std::min(product_.columns, length - j), tap * work_.geometry.channels + j});
    }
  }

  // Rows of pixels are segments of the depth; those that follow one another are one.
  void lay_out_rows() {
    const TilePhase& phase = work_.phase;
    const std::int64_t columns = phase.most.extent[2];
    b_row_ = phase.at.axis[2] * (phase.grid.scale[2] / phase.staged_step(2));
    for (std::size_t pixel = 0; pixel < phase.pixel_offsets.size();
         pixel += static_cast<std::size_t>(columns)) {
      a_segments_.push_back(static_cast<std::int64_t>(pixel) * kMostProductRows);
      b_segments_.push_back(phase.pixel_offsets[pixel]);
    }
    rows_follow_ = true;
    for (std::size_t row = 1; row < b_segments_.size(); ++row)
      rows_follow_ = rows_follow_ && b_segments_[row] - b_segments_[row - 1] == columns * b_row_;
  }

  Task task_at(std::int64_t number) const {
    Task task;
    task.split = number % work_.splits;
    number /= work_.splits;
    const std::int64_t filters = number % work_.filter_parts;
    number /= work_.filter_parts;
    const std::int64_t columns = number % work_.column_parts;
    task.group = number / work_.column_parts;
    task.tile = filters * work_.part_tiles();
    task.tiles = std::min(task.tile + work_.part_tiles(), work_.filter_tiles());
    task.panel = work_.panels * columns / work_.column_parts;
    task.panels = work_.panels * (columns + 1) / work_.column_parts;
    task.block = work_.phase.block_count() * task.split / work_.splits;
    task.blocks = work_.phase.block_count() * (task.split + 1) / work_.splits;
    return task;
  }

  void run_task(std::int64_t number, const TileSource::Bound& x, const TileSource::Bound& dy,
                float* memory, const KernelContext& context) const {
    const Task task = task_at(number);
    float* staged = memory;
    float* packed = staged + work_.staged_elements();
    float* row = packed + work_.packed_elements();
    float* c = sums(task, context);
    for (std::int64_t number_of_block = task.block; number_of_block < task.blocks;
         ++number_of_block) {
      const TileBlock block = work_.phase.block(number_of_block);
      pack(block, task, dy, row, packed);
      for (std::int64_t panel = task.panel; panel < task.panels; ++panel) {
        stage(block, task.group * work_.panels + panel, x, staged);
        multiply(block, task, staged, packed, c + panel * work_.width,
                 number_of_block > task.block);
      }
    }
  }

  // Where the sums of a task's group and split begin.
  float* sums(const Task& task, const KernelContext& context) const {
    const std::int64_t filter = task.group * work_.geometry.filters;
    if (work_.is_direct)
      return static_cast<float*>(context.pointer(result_.tensor)) + result_.offset +
             filter * result_.strides[0];
    const std::int64_t all = work_.geometry.groups * work_.geometry.filters;
    return context.scratch<float>(scratch_book_, partial_) +
           (task.split * all + filter) * work_.columns();
  }

  void stage(const TileBlock& block, std::int64_t panel, const TileSource::Bound& x,
             float* staged) const {
    const TilePhase& phase = work_.phase;
    const std::int64_t planes = phase.staged_extent(0, 1),
                       rows = phase.staged_extent(1, block.extent[1]),
                       columns = phase.staged_extent(2, block.extent[2]);
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t plane = 0; plane < planes; ++plane)
        for (std::int64_t row = 0; row < rows; ++row)
          x.row(
              block.image + image, panel,
              {phase.source_at(block, 0, plane), phase.source_at(block, 1, row),
               phase.source_at(block, 2, 0)},
              columns,
              staged + image * phase.at.image + plane * phase.at.axis[0] + row * phase.at.axis[1]);
  }

  // dy of the task's filters: element (filter, pixel) of a tile at [pixel][filter].
  void pack(const TileBlock& block, const Task& task, const TileSource::Bound& dy, float* row,
            float* packed) const {
    const std::int64_t filters = work_.geometry.filters, columns = block.extent[2];
    const std::int64_t tile_elements = block.pixels() * kMostProductRows;
    std::int64_t pixel = 0;
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t r = 0; r < block.extent[1]; ++r, pixel += columns) {
        dy.row(block.image + image, task.group,
               {block.start[0], block.start[1] + r, block.start[2]}, columns, row);
        for (std::int64_t tile = task.tile; tile < task.tiles; ++tile) {
          const std::int64_t first = tile * kMostProductRows;
          const float* source = row + first;
          float* target = packed + (tile - task.tile) * tile_elements + pixel * kMostProductRows;
          if (first + kMostProductRows <= filters) {
            for (std::int64_t i = 0; i < columns; ++i)
              std::memcpy(target + i * kMostProductRows, source + i * filters,
                          kMostProductRows * sizeof(float));
          } else {
            for (std::int64_t i = 0; i < columns; ++i)
              std::copy_n(source + i * filters, filters - first, target + i * kMostProductRows);
          }
        }
      }
  }

  void multiply(const TileBlock& block, const Task& task, const float* staged, const float* packed,
                float* c, bool accumulate) const {
    const std::int64_t filters = work_.geometry.filters, pixels = block.pixels();
    RowOperands<float> o;
    o.segments = rows_follow_ ? 1 : block.images * block.extent[1];
    o.depth = rows_follow_ ? pixels : block.extent[2];
    o.a_rows = a_rows_.data();
    o.a_step = kMostProductRows;
    o.a_segments = a_segments_.data();
    o.b_segments = b_segments_.data();
    o.b_row = b_row_;
    o.c_rows = c_rows_.data();
    o.accumulate = accumulate;
    for (std::int64_t tile = task.tile; tile < task.tiles; ++tile) {
      const std::int64_t first = tile * kMostProductRows;
      o.rows = std::min(kMostProductRows, filters - first);
      o.a = packed + (tile - task.tile) * pixels * kMostProductRows;
      for (const ColumnTile& columns : tiles_) {
        o.b = staged + columns.b;
        o.columns = columns.columns;
        o.c = c + first * c_rows_[1] + columns.c;
        product_.multiply(o);
      }
    }
  }

  // Adds the splits in order and hands the rows on.
  void store(const KernelContext& context) const {
    const FilterSink<float> sink(store_, work_.geometry, work_.phase.grid, context);
    const std::int64_t filters = work_.geometry.groups * work_.geometry.filters,
                       columns = work_.columns();
    float* partial = context.scratch<float>(scratch_book_, partial_);
    parallel_for(filters, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t filter = begin; filter < end; ++filter) {
        float* total = partial + filter * columns;
        for (std::int64_t split = 1; split < work_.splits; ++split) {
          const float* addend = total + split * filters * columns;
          for (std::int64_t j = 0; j < columns; ++j) total[j] += addend[j];
        }
        sink.row(filter / work_.geometry.filters, filter % work_.geometry.filters, 0, columns,
                 total);
      }
    });
  }

  TileGradientWork work_;
  const RowProduct<float>& product_;
  TileSource x_, dy_;
  ConvStore<float> store_;
  View result_;  // read if sums go straight there
  std::vector<ColumnTile> tiles_;
  std::vector<std::int64_t> a_segments_, b_segments_;
  std::int64_t b_row_ = 0;
  bool rows_follow_ = false;
  std::array<std::int64_t, kMostProductRows> a_rows_, c_rows_;
  int blocks_ = 0, partial_ = 0;
};

}  // namespace ashlar::cpu
