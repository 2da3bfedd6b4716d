// 1 x 1 convolutions in NCHW: filters x pixels, so that neither operand is transposed. Filters are
// packed in panels of MR rows, pixels in panels of NR columns.
#pragma once

#include "cpu/constants.hpp"
#include "cpu/conv/conv_tile_filter.hpp"
#include "cpu/kernels/igemm_micro_kernel.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kLineElements = 16;  // elements per cache line

// One blocking for the cost estimate and for the kernel.
struct TilePlanesWork {
  ConvGeometry geometry;
  bool forward;
  ConvPhase phase;
  std::int64_t threads;
  TileFilter filter;
  std::int64_t block_panels;      // maximum panels of pixels packed together
  std::int64_t filter_parts = 1;  // tasks per panel of pixels
  static constexpr std::int64_t kColumns = kMaxTileColumns;

  TilePlanesWork(const Region& region, const DeviceProps& device)
      : geometry(*region.anchor),
        forward(region.anchor_as<ConvForward>() != nullptr),
        phase(phases_of(geometry, region)[0]),
        threads(std::max(device.compute_units, 1)),
        filter(region.prologues[1], geometry, forward, kMaxTileRows) {
    // A block takes a quarter of L2.
    constexpr std::int64_t kMaxPanels = 16, kMany = 8;
    const auto panel_bytes = static_cast<std::int64_t>(sizeof(float)) * summed() * kColumns;
    block_panels = std::clamp<std::int64_t>(device.l2_bytes / 4 / panel_bytes, 1, kMaxPanels);
    if (geometry.groups * phase.images * panels() < kMany * threads)
      filter_parts = std::min(threads, filter.panels());
  }
  TilePlanesWork(const TilePlanesWork&) = delete;

  // One tap without padding, and contiguous pixels in source and result.
  static bool takes(const Region& region) {
    if (region.anchor_as<ConvBackwardFilter>()) return false;
    const ConvGeometry geometry(*region.anchor);
    const bool forward = region.anchor_as<ConvForward>() != nullptr;
    if (geometry.tap_count() != 1 || geometry.padding != Spatial{}) return false;
    if (!forward && geometry.stride != Spatial{1, 1, 1}) return false;
    const Spatial &source = forward ? geometry.x : geometry.y,
                  &result = forward ? geometry.y : geometry.x;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      if ((result[axis] - 1) * (forward ? geometry.stride[axis] : 1) >= source[axis]) return false;
    const int last = region.epilogue.space.rank() - 1;
    const auto along_pixels = [&](const PointwiseProgram& program) {
      return contiguous_views(program, last) > contiguous_views(program, 1);
    };
    return along_pixels(region.prologues[0]) && along_pixels(region.epilogue);
  }

  std::int64_t summed() const { return forward ? geometry.channels : geometry.filters; }
  std::int64_t results() const { return forward ? geometry.filters : geometry.channels; }
  std::int64_t plane() const { return phase.extent[0] * phase.extent[1] * phase.extent[2]; }
  std::int64_t panels() const { return divide_up(plane(), kColumns); }  // panels per image
  std::int64_t block() const { return block_panels * kColumns; }        // pixels
  std::int64_t part_tiles() const { return divide_up(filter.panels(), filter_parts); }
  // If threads split the filters, they pack all panels together first.
  bool shares_panels() const { return filter_parts > 1; }
  std::int64_t panel_elements() const { return summed() * kColumns; }
  std::int64_t shared_elements() const {
    return shares_panels() ? geometry.groups * phase.images * panels() * panel_elements() : 0;
  }
  // Per-thread scratch: a block's panels, a row, results of a tile.
  std::int64_t packed_elements() const { return shares_panels() ? 0 : summed() * block(); }
  std::int64_t per_thread() const { return packed_elements() + (1 + kMaxTileRows) * block(); }
  std::int64_t filter_elements() const { return round_up(filter.elements(phase), kLineElements); }
  std::int64_t scratch_bytes() const {
    return static_cast<std::int64_t>(sizeof(float)) *
           (threads * per_thread() + shared_elements() + filter_elements());
  }
};

class TilePlanesKernel final : public Kernel {
 public:
  TilePlanesKernel(const Region& region, const DeviceProps& device)
      : work_(region, device),
        micro_kernel_(igemm_micro_kernel<float>()),
        filter_program_(region.prologues[1]),
        source_(region.prologues[0], work_.forward ? work_.geometry.x : work_.geometry.y,
                work_.summed(), work_.phase.scale[kMaxSpatial - 1], false),
        store_(region.epilogue, z_of(region), work_.geometry, 1 + work_.geometry.spatial, 1) {
    // Whether planes are dense.
    const auto is_dense = [&](const View& view, const Spatial& extent) {
      const ViewStrides distances(view, work_.geometry.spatial);
      return distances.axis[2] == 1 && (extent[1] == 1 || distances.axis[1] == extent[2]) &&
             (extent[0] == 1 || distances.axis[0] == extent[1] * extent[2]);
    };
    const PointwiseProgram& source = region.prologues[0];
    if (source.is_plain_load() && source.steps[0].view.dtype == f32)
      strided_ = source.steps[0].view;
    if (strided_.present() && work_.phase.scale == Spatial{1, 1, 1} &&
        (work_.forward ? work_.geometry.x : work_.geometry.y) == work_.phase.extent &&
        is_dense(strided_, work_.phase.extent))
      in_memory_ = strided_;
    // Few enough channels for a panel to stay in L1, and few results, since each is on its own
    // page.
    constexpr std::int64_t kFewResults = 128;
    reads_in_place_ = in_memory_.present() && !work_.shares_panels() &&
                      work_.results() <= kFewResults &&
                      work_.summed() * work_.kColumns * 4 <= device.l1_bytes * 2 / 3;
    const auto post_ops = match_post_ops(region.epilogue, 1 + work_.geometry.spatial, f32);
    const bool plain_sum =
        work_.geometry.alpha == 1.0 && (z_of(region).empty() || work_.geometry.beta == 0.0);
    if (post_ops && post_ops->only_stores() && post_ops->result.dtype == f32 && plain_sum &&
        is_dense(post_ops->result, work_.phase.extent))
      direct_ = post_ops->result;
    for (std::int64_t i = 0; i < work_.results(); ++i) {
      a_rows_.push_back(i / kMaxTileRows * work_.summed() * kMaxTileRows + i % kMaxTileRows);
      c_rows_.push_back(direct_.present() ? i * direct_.strides[1]
                                          : i % kMaxTileRows * work_.block());
    }
    reserve_scratch(true);
  }

  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(filter_program_, constants)) return;
    prepacked_.allocate(work_.filter_elements());
    work_.filter.pack(work_.phase, constants, prepacked_.data());
    reserve_scratch(false);
  }

  void run(const KernelContext& context) const override {
    const float* filter = prepacked_.data();
    if (filter == nullptr) {
      float* scratch = context.scratch<float>(scratch_layout_, filter_);
      work_.filter.pack(work_.phase, context, scratch);
      filter = scratch;
    }
    const PatchOperand<float> source(source_, work_.geometry, work_.phase, false, context);
    const PixelSink<float> sink(store_, work_.geometry, work_.phase, work_.results(), false,
                                context);
    const std::int64_t panels = work_.panels(), images = work_.phase.images;
    const std::int64_t tasks = work_.filter_parts * work_.geometry.groups * images * panels;
    float* scratch = context.scratch<float>(scratch_layout_, panels_);
    if (work_.shares_panels()) pack_all(source, scratch, context);
    // No more threads than have scratch.
    parallel_for(
        tasks, divide_up(tasks, work_.threads),
        [&](std::int64_t begin, std::int64_t end, int thread) {
          float* memory = scratch + work_.shared_elements() + thread * work_.per_thread();
          while (begin < end) {  // panels of one plane together
            const std::int64_t plane = begin / panels, panel = begin % panels;
            const std::int64_t count = std::min({work_.block_panels, end - begin, panels - panel});
            run_block(
                {plane / images / work_.geometry.groups, plane / images % work_.geometry.groups,
                 plane % images, panel * TilePlanesWork::kColumns,
                 std::min(count * TilePlanesWork::kColumns,
                          work_.plane() - panel * TilePlanesWork::kColumns)},
                source, sink, filter, scratch, memory, context);
            begin += count;
          }
        });
  }

 private:
  struct Task {
    std::int64_t part, group, image, pixel, pixels;
  };

  void reserve_scratch(bool with_filter) {
    scratch_layout_ = ScratchLayout();
    const auto bytes = static_cast<std::int64_t>(sizeof(float));
    panels_ = scratch_layout_.add(
        "panels", (work_.threads * work_.per_thread() + work_.shared_elements()) * bytes);
    if (with_filter) filter_ = scratch_layout_.add("filter", work_.filter_elements() * bytes);
  }

  void run_block(const Task& task, const PatchOperand<float>& source, const PixelSink<float>& sink,
                 const float* filter, const float* shared, float* memory,
                 const KernelContext& context) const {
    constexpr std::int64_t kColumns = TilePlanesWork::kColumns;
    const std::int64_t summed = work_.summed(), results = work_.results();
    const std::int64_t pixels = task.pixels;
    const std::int64_t first_pixel = task.image * work_.plane() + task.pixel;
    IgemmMicroArgs<float> o;
    const std::int64_t no_offset = 0;
    o.a = filter + task.group * work_.filter.panels() * summed * kMaxTileRows;
    o.a_step = kMaxTileRows;
    o.a_segments = &no_offset;
    o.k = summed;
    o.b_row = kColumns;
    const std::int64_t first = task.part * work_.part_tiles() * kMaxTileRows,
                       last = std::min(first + work_.part_tiles() * kMaxTileRows, results);
    if (first >= last) return;
    const auto use_results = [&](std::int64_t begin, std::int64_t end) {
      o.rows = end - begin;
      o.a_rows = a_rows_.data() + begin;
      o.c_rows = c_rows_.data() + begin;
    };
    float* c = nullptr;
    if (direct_.present()) {
      c = static_cast<float*>(context.pointer(direct_.tensor)) + direct_.offset +
          task.image * direct_.strides[0] + task.group * results * direct_.strides[1] + task.pixel;
      use_results(first, last);
    }

    std::int64_t done = 0;
    if (reads_in_place_ && direct_.present()) {
      // Panel by panel: a panel stays in L1 while the filters pass, and the next one is prefetched
      // to L2.
      const float* planes = in_memory(task, context);
      o.b_row = o.next_step = in_memory_.strides[1];
      o.next_lines = summed;
      o.next_tile = kLineElements;
      o.next_tiles = micro_kernel_.columns / kLineElements;
      o.columns = micro_kernel_.columns;
      for (; done + micro_kernel_.columns <= pixels; done += micro_kernel_.columns) {
        const bool is_last = done + 2 * micro_kernel_.columns > pixels;
        o.b = planes + done;
        o.next = is_last ? nullptr : o.b + micro_kernel_.columns;
        o.c = c + done;
        micro_kernel_.multiply(o);
      }
      if (done == pixels) return;
      o.b_row = kColumns;
      o.next = nullptr;
    }
    float* row = memory + work_.packed_elements();
    float* buffer = row + work_.block();
    const float* packed = memory;
    if (work_.shares_panels())
      packed = shared + panel_number(task) * work_.panel_elements();
    else
      pack({task.part, task.group, task.image, task.pixel + done, pixels - done}, 0, summed, source,
           row, memory, context);
    const auto multiply_columns = [&](float* to) {
      for (std::int64_t column = 0; column < pixels - done; column += micro_kernel_.columns) {
        o.columns = std::min(micro_kernel_.columns, pixels - done - column);
        o.b = packed + column / kColumns * kColumns * summed + column % kColumns;
        o.c = to + column;
        micro_kernel_.multiply(o);
      }
    };
    if (c != nullptr) return multiply_columns(c + done);
    for (std::int64_t result = first; result < last; result += kMaxTileRows) {
      use_results(result, std::min(result + kMaxTileRows, last));
      multiply_columns(buffer);
      for (std::int64_t i = 0; i < o.rows; ++i)
        sink.row(task.group, result + i, first_pixel, pixels, buffer + i * work_.block());
    }
  }

  // The first channel of the task's pixels; null if the source needs conversion or gathering.
  const float* in_memory(const Task& task, const KernelContext& context) const {
    if (!in_memory_.present()) return nullptr;
    return static_cast<const float*>(context.pointer(in_memory_.tensor)) + in_memory_.offset +
           task.image * in_memory_.strides[0] +
           task.group * work_.summed() * in_memory_.strides[1] + task.pixel;
  }

  // Global index of the panel of the task's first pixel.
  std::int64_t panel_number(const Task& task) const {
    return (task.group * work_.phase.images + task.image) * work_.panels() +
           task.pixel / TilePlanesWork::kColumns;
  }

  // Packs all panels in parallel, by chunks of channels.
  void pack_all(const PatchOperand<float>& source, float* shared,
                const KernelContext& context) const {
    constexpr std::int64_t kChunk = 32;
    const std::int64_t chunks = divide_up(work_.summed(), kChunk), images = work_.phase.images;
    parallel_for(work_.geometry.groups * images * chunks, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) float row[kMaxShared];
                   for (std::int64_t item = begin; item < end; ++item) {
                     const std::int64_t plane = item / chunks, first = item % chunks * kChunk;
                     const std::int64_t last = std::min(first + kChunk, work_.summed());
                     for (std::int64_t pixel = 0; pixel < work_.plane(); pixel += kMaxShared) {
                       const Task task{0, plane / images, plane % images, pixel,
                                       std::min(kMaxShared, work_.plane() - pixel)};
                       pack(task, first, last, source, row,
                            shared + panel_number(task) * work_.panel_elements(), context);
                     }
                   }
                 });
  }

  // Packs element (channel, pixel) to panel[channel * kColumns + pixel], for channels [first,
  // last).
  void pack(const Task& task, std::int64_t first, std::int64_t last,
            const PatchOperand<float>& source, float* row, float* panels,
            const KernelContext& context) const {
    constexpr std::int64_t kColumns = TilePlanesWork::kColumns;
    const std::int64_t summed = work_.summed();
    const std::int64_t pixels = task.pixels;
    const std::int64_t first_pixel = task.image * work_.plane() + task.pixel;
    const float* planes = in_memory(task, context);
    if (planes == nullptr && strided_.present())
      return pack_strided(task, first, last, panels, context);
    for (std::int64_t c = first; c < last; ++c) {
      const float* values = row;
      if (planes != nullptr)
        values = planes + c * in_memory_.strides[1];
      else
        source.row(task.group, c, first_pixel, pixels, row);
      float* target = panels + c * kColumns;
      for (std::int64_t done = 0; done < pixels; done += kColumns, target += kColumns * summed)
        std::copy_n(values + done, std::min(kColumns, pixels - done), target);
    }
  }

  // The same from strided floats in memory: contiguous output along a row, a few rows at once.
  void pack_strided(const Task& task, std::int64_t first, std::int64_t last, float* panels,
                    const KernelContext& context) const {
    struct Run {
      std::int64_t from, to, count;
    };
    constexpr std::size_t kMaxRuns = 64;
    std::array<Run, kMaxRuns> runs;
    constexpr std::int64_t kColumns = TilePlanesWork::kColumns;
    const ConvPhase& phase = work_.phase;
    const ViewStrides distances(strided_, work_.geometry.spatial);
    const float* start = static_cast<const float*>(context.pointer(strided_.tensor)) +
                         strided_.offset + task.image * distances.a +
                         task.group * work_.summed() * distances.b;
    const std::int64_t step = distances.axis[2] * phase.scale[2], columns = phase.extent[2];
    for (std::int64_t done = 0; done < task.pixels;) {
      std::size_t count = 0;
      for (; count < kMaxRuns && done < task.pixels; ++count) {
        const std::int64_t pixel = task.pixel + done, column = pixel % columns;
        const std::int64_t line = pixel / columns % phase.extent[1],
                           plane = pixel / columns / phase.extent[1];
        runs[count] = {
            plane * phase.scale[0] * distances.axis[0] + line * phase.scale[1] * distances.axis[1] +
                column * step,
            done / kColumns * work_.panel_elements() + done % kColumns,
            std::min({columns - column, kColumns - done % kColumns, task.pixels - done})};
        done += runs[count].count;
      }
      for (std::int64_t c = first; c < last; ++c)
        for (std::size_t i = 0; i < count; ++i) {
          const float* from = start + c * distances.b + runs[i].from;
          float* to = panels + runs[i].to + c * kColumns;
          for (std::int64_t j = 0; j < runs[i].count; ++j) to[j] = from[j * step];
        }
    }
  }

  TilePlanesWork work_;
  const IgemmMicroKernel<float>& micro_kernel_;
  PointwiseProgram filter_program_;
  PatchSource<float> source_;
  ConvStore<float> store_;
  static constexpr std::int64_t kMaxShared = 16 * TilePlanesWork::kColumns;
  View strided_;    // a plain f32 source
  View in_memory_;  // a dense source, packed by copying
  bool reads_in_place_ = false;
  View direct_;                                // dense f32 result, stored directly
  std::vector<std::int64_t> a_rows_, c_rows_;  // offsets of all results
  PrepackedBuffer<float> prepacked_;           // prepacked constant filter
  int panels_ = 0, filter_ = 0;
};

}  // namespace ashlar::cpu
