// Backward-filter on tiles of filters by channels: dw = dy^T x, reduced over pixels. Blocks of
// pixels are processed in sequence; dy is packed in panels of MR filters, and all taps read the
// staged source rows in place.
#pragma once

#include <cstring>

#include "cpu/conv/conv_tile_source.hpp"
#include "cpu/conv/conv_tiles.hpp"
#include "cpu/kernels/igemm_micro_kernel.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// One blocking for the cost estimate and for the kernel.
struct TileGradientWork {
  ConvGeometry geometry;
  std::int64_t width;   // channels per staged block
  std::int64_t panels;  // panels of channels
  std::int64_t threads;
  std::vector<TilePhase> phases;  // one, or one per column of the window
  std::int64_t splits = 1, column_parts = 1, filter_parts = 1;  // tasks per group
  bool is_direct;  // accumulators are stored directly to dw

  TileGradientWork(const Region& region, const DeviceProps& device)
      : geometry(*region.anchor),
        width(geometry.channels % kMaxTileColumns == 0 ? kMaxTileColumns : geometry.channels),
        panels(geometry.channels / width),
        threads(std::max(device.compute_units, 1)) {
    const TileProblem cut = problem(region, device);
    for (ConvPhase& phase : parts_of(geometry.forward_phase()))
      phases.emplace_back(std::move(phase), cut);
    const std::int64_t blocks = phases[0].block_count();
    if (geometry.groups < threads) {
      // Every part of the channels packs all of dy, every part of the filters stages all of x.
      const std::int64_t staged =
          phases[0].in_place ? 0 : geometry.channels * static_cast<std::int64_t>(phases.size());
      if (by_pixels(device))
        splits = std::min(threads, blocks);
      else if (panels >= threads && (geometry.filters <= staged || filter_tiles() < threads))
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
    std::int64_t columns = 0;
    for (const TilePhase& phase : phases)
      columns += phase.segments * panels * round_up(phase.run * width, kVector);
    return columns;
  }
  const TileBlock& block() const { return phases[0].most; }
  // Index of a tap in a row of dw: taps are in the order of the source elements they read.
  std::int64_t tap_number(const ConvTap& tap) const {
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      number = number * geometry.window[axis] +
               (tap.shift[axis] + geometry.padding[axis]) / geometry.dilation[axis];
    return number;
  }
  std::int64_t filter_tiles() const { return divide_up(geometry.filters, kMaxTileRows); }
  std::int64_t part_tiles() const { return divide_up(filter_tiles(), filter_parts); }
  // Per-thread scratch: the staged source, the panels of dy, a row of dy.
  std::int64_t staged_elements() const {
    std::int64_t most = 0;
    for (const TilePhase& phase : phases) most = std::max(most, phase.staged_elements());
    return round_up(most + kMaxTileColumns, kVectorLine);
  }
  std::int64_t packed_elements() const {
    return round_up(part_tiles() * kMaxTileRows * block().pixels(), kVectorLine);
  }
  std::int64_t row_elements() const {
    return round_up(block().extent[2] * geometry.filters, kVectorLine);
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
    return geometry.filters * columns() * kFloat <= device.l2_bytes / 4;
  }
  // Short pixel rows make short runs of K. Staged once per column of the window, the rows of an
  // image become contiguous.
  std::vector<ConvPhase> parts_of(ConvPhase whole) const {
    constexpr std::int64_t kShort = 16;
    if (panels == 1 || geometry.window[2] == 1 || geometry.stride[1] != 1 || geometry.y[2] > kShort)
      return {std::move(whole)};
    std::vector<ConvPhase> parts;
    for (std::int64_t column = 0; column < geometry.window[2]; ++column) {
      parts.push_back(whole);
      std::erase_if(parts.back().taps, [&](const ConvTap& tap) {
        return tap.shift[2] != column * geometry.dilation[2] - geometry.padding[2];
      });
    }
    return parts;
  }
  TileProblem problem(const Region& region, const DeviceProps& device) const {
    TileProblem problem;
    const PointwiseProgram& x = region.prologues[ConvBackwardFilter::x];
    if (x.is_plain_load() && x.steps[0].view.dtype == f32) {
      const ViewStrides distances(x.steps[0].view, geometry.spatial);
      // Rows are read in whole vectors. Distant pixels would alias in few cache sets.
      constexpr std::int64_t kFar = 256;
      problem.is_in_memory =
          distances.b == 1 && width == kMaxTileColumns &&
          distances.axis[kMaxSpatial - 1] * geometry.stride[kMaxSpatial - 1] <= kFar;
      problem.distances = {distances.a, distances.axis};
    }
    problem.channels = width;
    problem.source = geometry.x;
    problem.planes = geometry.groups;
    problem.block_bytes = std::max<std::int64_t>(device.l2_bytes / 2, 64 * 1024);
    problem.pixel_bytes = geometry.filters * kFloat;
    problem.threads = by_pixels(device) ? threads : 1;
    return problem;
  }
  // Whether dw can hold the accumulators directly, tap by tap in the order they are computed.
  bool stores_sums(const Region& region) const {
    if (geometry.alpha != 1.0 || (!z_of(region).empty() && geometry.beta != 0.0)) return false;
    const auto post_ops = match_post_ops(region.epilogue, 1, f32);
    if (!post_ops || !post_ops->only_stores() || post_ops->result.dtype != f32) return false;
    const ViewStrides distances(post_ops->result, geometry.spatial);
    for (const ConvTap& tap : geometry.forward_phase().taps) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
        offset += tap.stored[axis] * distances.axis[axis];
      if (offset != tap_number(tap) * geometry.channels) return false;
    }
    return true;
  }
};

class TileGradientKernel final : public Kernel {
 public:
  TileGradientKernel(const Region& region, const DeviceProps& device)
      : work_(region, device),
        micro_kernel_(igemm_micro_kernel<float>()),
        x_(region.prologues[ConvBackwardFilter::x], work_.geometry, work_.geometry.x, work_.width,
           work_.phases[0].staged_step(kMaxSpatial - 1)),
        dy_(region.prologues[ConvBackwardFilter::dy], work_.geometry, work_.geometry.y,
            work_.geometry.filters, 1),
        store_(region.epilogue, z_of(region), work_.geometry, 1, 1),
        result_(region.epilogue.stores[0].view),
        whole_(work_.geometry.forward_phase()) {
    for (const TilePhase& phase : work_.phases) parts_.push_back(lay_out(phase));
    for (std::size_t i = 0; i < a_rows_.size(); ++i) {
      a_rows_[i] = static_cast<std::int64_t>(i);
      c_rows_[i] =
          static_cast<std::int64_t>(i) * (work_.is_direct ? result_.strides[0] : work_.columns());
    }
    const auto bytes = static_cast<std::int64_t>(sizeof(float));
    blocks_ = scratch_layout_.add("blocks", work_.threads * work_.per_thread() * bytes);
    partial_ = scratch_layout_.add("partial sums", work_.partial_elements() * bytes);
  }

  void run(const KernelContext& context) const override {
    const std::int64_t parts = work_.column_parts * work_.filter_parts * work_.splits;
    const std::int64_t tasks = work_.geometry.groups * parts;
    float* scratch = context.scratch<float>(scratch_layout_, blocks_);
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
  // Columns of dw of one micro-kernel call.
  struct ColumnTile {
    std::int64_t b, columns, c;  // offsets in the staged source and in a row of dw
  };
  // Addressing of the micro-kernel calls of a phase.
  struct Part {
    std::vector<ColumnTile> tiles;
    std::vector<std::int64_t> a_segments, b_segments;  // rows of pixels
    std::int64_t b_row = 0;
    bool rows_follow = true;    // the rows of an image are contiguous: one segment
    bool images_follow = true;  // and so are the images of a block
  };
  // Filters, panels of channels and blocks of pixels of a task.
  struct Task {
    std::int64_t group, split;
    std::int64_t tile, tiles, panel, panels, block, blocks;  // begin and end
  };

  Part lay_out(const TilePhase& phase) const {
    Part part;
    // With several channel panels every tap has its own columns.
    const std::int64_t taps = work_.panels > 1 ? 1 : phase.run, length = taps * work_.width;
    const auto count = static_cast<std::int64_t>(phase.grid.taps.size());
    for (std::int64_t tap = 0; tap < count; tap += taps) {
      const std::int64_t start = phase.segment_offsets[static_cast<std::size_t>(tap / phase.run)] +
                                 tap % phase.run * work_.width;
      const std::int64_t number = work_.tap_number(phase.grid.taps[static_cast<std::size_t>(tap)]);
      for (std::int64_t j = 0; j < length; j += micro_kernel_.columns)
        part.tiles.push_back({start + j, std::min(micro_kernel_.columns, length - j),
                              number * work_.geometry.channels + j});
    }
    const std::int64_t columns = phase.most.extent[2], rows = phase.most.extent[1];
    part.b_row = phase.at.axis[2] * (phase.in_place ? phase.grid.scale[2]
                                                    : phase.grid.scale[2] / phase.staged_step(2));
    for (std::size_t pixel = 0; pixel < phase.pixel_offsets.size();
         pixel += static_cast<std::size_t>(columns)) {
      const std::int64_t offset = phase.pixel_offsets[pixel];
      if (!part.b_segments.empty()) {
        const bool follows = offset - part.b_segments.back() == columns * part.b_row;
        const bool same_image = static_cast<std::int64_t>(part.b_segments.size()) % rows != 0;
        (same_image ? part.rows_follow : part.images_follow) &= follows;
      }
      part.a_segments.push_back(static_cast<std::int64_t>(pixel) * kMaxTileRows);
      part.b_segments.push_back(offset);
    }
    if (!part.rows_follow) return part;
    // Keeps the first row of every image.
    const auto thin = [&](std::vector<std::int64_t>& offsets) {
      for (std::int64_t image = 0; image < phase.most.images; ++image)
        offsets[static_cast<std::size_t>(image)] = offsets[static_cast<std::size_t>(image * rows)];
    };
    thin(part.a_segments);
    thin(part.b_segments);
    return part;
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
    task.block = work_.phases[0].block_count() * task.split / work_.splits;
    task.blocks = work_.phases[0].block_count() * (task.split + 1) / work_.splits;
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
      const TileBlock block = work_.phases[0].block(number_of_block);
      pack(block, task, dy, row, packed);
      Upcoming upcoming;
      if (number_of_block + 1 < task.blocks)
        upcoming = dy_of(work_.phases[0].block(number_of_block + 1), task, dy);
      for (std::int64_t panel = task.panel; panel < task.panels; ++panel) {
        const std::int64_t channels = task.group * work_.panels + panel;
        for (std::size_t i = 0; i < parts_.size(); ++i)
          multiply(parts_[i], block, task, source(work_.phases[i], block, channels, x, staged),
                   packed, c + panel * work_.width, number_of_block > task.block, upcoming);
      }
    }
  }

  // Accumulators of a task's group and split.
  float* sums(const Task& task, const KernelContext& context) const {
    const std::int64_t filter = task.group * work_.geometry.filters;
    if (work_.is_direct)
      return static_cast<float*>(context.pointer(result_.tensor)) + result_.offset +
             filter * result_.strides[0];
    const std::int64_t all = work_.geometry.groups * work_.geometry.filters;
    return context.scratch<float>(scratch_layout_, partial_) +
           (task.split * all + filter) * work_.columns();
  }

  // The source of a block for a panel of channels: in place or staged.
  const float* source(const TilePhase& phase, const TileBlock& block, std::int64_t panel,
                      const TileSource::Bound& x, float* staged) const {
    if (phase.in_place) {
      std::int64_t distance = 0;
      return x.in_memory(block.image, panel,
                         {phase.source_at(block, 0, 0), phase.source_at(block, 1, 0),
                          phase.source_at(block, 2, 0)},
                         distance);
    }
    stage_block(phase, block, panel, x, staged);
    return staged;
  }

  // Packs dy of the task's filters: element (filter, pixel) of a tile at [pixel][filter].
  void pack(const TileBlock& block, const Task& task, const TileSource::Bound& dy, float* row,
            float* packed) const {
    const std::int64_t filters = work_.geometry.filters, columns = block.extent[2];
    const std::int64_t tile_elements = block.pixels() * kMaxTileRows,
                       whole = filters / kMaxTileRows;
    std::int64_t pixel = 0;
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t r = 0; r < block.extent[1]; ++r, pixel += columns) {
        const Spatial position = {block.start[0], block.start[1] + r, block.start[2]};
        std::int64_t distance = filters;
        const float* pixels = dy.in_memory(block.image + image, task.group, position, distance);
        if (pixels == nullptr) {
          dy.row(block.image + image, task.group, position, columns, row);
          pixels = row;
        }
        // Enough tiles together to use whole cache lines of a pixel.
        constexpr std::int64_t kChunk = 8;
        for (std::int64_t tile = task.tile; tile < task.tiles; tile += kChunk) {
          const std::int64_t last = std::min(tile + kChunk, task.tiles);
          float* target = packed + (tile - task.tile) * tile_elements + pixel * kMaxTileRows;
          for (std::int64_t i = 0; i < columns; ++i, target += kMaxTileRows)
            copy_tiles(pixels + i * distance, tile, std::clamp(whole, tile, last), last, target,
                       tile_elements);
        }
      }
  }

  // Copies the filters of tiles [first, last) of one pixel; tiles from `cut` on are partial.
  void copy_tiles(const float* pixel, std::int64_t first, std::int64_t cut, std::int64_t last,
                  float* target, std::int64_t tile_elements) const {
    for (std::int64_t tile = first; tile < cut; ++tile, target += tile_elements)
      std::memcpy(target, pixel + tile * kMaxTileRows, kMaxTileRows * sizeof(float));
    if (cut < last)
      std::copy_n(pixel + cut * kMaxTileRows, work_.geometry.filters - cut * kMaxTileRows, target);
  }

  // Prefetch of the next block's dy to L2 while the current block is multiplied, one cache line of
  // every pixel at a time.
  struct Upcoming {
    const float *start = nullptr, *end = nullptr;  // filters of the first pixel
    std::int64_t distance = 0;                     // pixel stride
  };
  Upcoming dy_of(const TileBlock& block, const Task& task, const TileSource::Bound& dy) const {
    Upcoming upcoming;
    upcoming.start = dy.in_memory(block.image, task.group, block.start, upcoming.distance);
    if (upcoming.start == nullptr) return {};
    upcoming.end = upcoming.start + std::min(task.tiles * kMaxTileRows, work_.geometry.filters);
    upcoming.start += task.tile * kMaxTileRows;
    return upcoming;
  }

  void multiply(const Part& part, const TileBlock& block, const Task& task, const float* b,
                const float* packed, float* c, bool accumulate, Upcoming& upcoming) const {
    const std::int64_t filters = work_.geometry.filters, pixels = block.pixels();
    IgemmMicroArgs<float> o;
    const std::int64_t rows = block.extent[1];
    o.segments = !part.rows_follow ? block.images * rows : part.images_follow ? 1 : block.images;
    o.k = pixels / o.segments;
    o.a_rows = a_rows_.data();
    o.a_step = kMaxTileRows;
    o.a_segments = part.a_segments.data();
    o.b_segments = part.b_segments.data();
    o.b_row = part.b_row;
    o.c_rows = c_rows_.data();
    o.accumulate = accumulate;
    o.next_step = upcoming.distance;
    o.next_lines = pixels;
    constexpr std::int64_t kLineElements = 16;
    for (std::int64_t tile = task.tile; tile < task.tiles; ++tile) {
      const std::int64_t first = tile * kMaxTileRows;
      o.rows = std::min(kMaxTileRows, filters - first);
      o.a = packed + (tile - task.tile) * pixels * kMaxTileRows;
      for (const ColumnTile& columns : part.tiles) {
        o.b = b + columns.b;
        o.columns = columns.columns;
        o.c = c + first * c_rows_[1] + columns.c;
        o.next = upcoming.start < upcoming.end ? upcoming.start : nullptr;
        upcoming.start += kLineElements;
        micro_kernel_.multiply(o);
      }
    }
  }

  // Reduces the split-K partials in a fixed order and passes the rows to the sink.
  void store(const KernelContext& context) const {
    const FilterSink<float> sink(store_, work_.geometry, whole_, context);
    const std::int64_t filters = work_.geometry.groups * work_.geometry.filters,
                       columns = work_.columns();
    float* partial = context.scratch<float>(scratch_layout_, partial_);
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
  const IgemmMicroKernel<float>& micro_kernel_;
  TileSource x_, dy_;
  ConvStore<float> store_;
  View result_;              // used if accumulators are stored directly
  ConvPhase whole_;          // all taps, in the order of dw's rows
  std::vector<Part> parts_;  // by phase
  std::array<std::int64_t, kMaxTileRows> a_rows_, c_rows_;
  int blocks_ = 0, partial_ = 0;
};

}  // namespace ashlar::cpu
