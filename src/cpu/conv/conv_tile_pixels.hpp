// Forward and backward-data convolutions on tiles of pixels (see conv_tiles.hpp).
#pragma once

#include <cstring>

#include "cpu/constants.hpp"
#include "cpu/conv/conv_tile_filter.hpp"
#include "cpu/conv/conv_tile_sink.hpp"
#include "cpu/kernels/igemm_micro_kernel.hpp"
#include "cpu/kernels/stream.hpp"

namespace ashlar::cpu {

// NR of the widest CPU, so that the blocking is the same on all of them.
inline constexpr std::int64_t kPanelColumns = kMaxTileColumns;
inline constexpr std::int64_t kLine =
    kWorkspaceAlignment / static_cast<std::int64_t>(sizeof(float));

inline bool is_forward(const Region& region) { return region.anchor_as<ConvForward>() != nullptr; }

inline TileProblem problem_of(const Region& region, const ConvGeometry& geometry) {
  TileProblem problem;
  problem.planes = geometry.groups;
  problem.channels = is_forward(region) ? geometry.channels : geometry.filters;
  problem.source = is_forward(region) ? geometry.x : geometry.y;
  const PointwiseProgram& source = region.prologues[0];
  if (!source.is_plain_load() || source.steps[0].view.dtype != f32) return problem;
  const ViewStrides distances(source.steps[0].view, geometry.spatial);
  problem.is_in_memory = distances.b == 1 || problem.channels == 1;
  problem.distances = {distances.a, distances.axis};
  return problem;
}

// A phase, and the loop order of its filter panels.
struct PanelPhase : TilePhase {
  std::int64_t resident;  // panels that stay in L2 while the tiles of a block pass
  std::vector<TileSlice> slices;
};

// The source of a block takes a quarter of L2, and so do the resident panels. A panel larger than a
// third of L2 is sliced along K, so that the next slice is prefetched while one is in use.
inline PanelPhase make_panel_phase(ConvPhase phase, TileProblem problem, std::int64_t results,
                                   bool buffered, const DeviceProps& device) {
  constexpr auto kRowBytes = kPanelColumns * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t k = static_cast<std::int64_t>(phase.taps.size()) * problem.channels;
  const std::int64_t panel_bytes = std::max<std::int64_t>(k, 1) * kRowBytes;
  problem.panels = divide_up(results, kPanelColumns);
  problem.filter_bytes = problem.panels * panel_bytes;
  const std::int64_t resident =
      std::clamp<std::int64_t>(device.l2_bytes / 4 / panel_bytes, 1, problem.panels);
  problem.block_bytes = std::max<std::int64_t>(device.l2_bytes / 4, 64 * 1024);
  problem.pixel_bytes = buffered ? resident * kRowBytes : 0;
  problem.threads = std::max(device.compute_units, 1);
  TilePhase tiles(std::move(phase), problem);
  std::vector<TileSlice> slices = slice_k(tiles, kPanelColumns, device.l2_bytes / 3);
  return {std::move(tiles), resident, std::move(slices)};
}

// Everything known at build time: one blocking for configs() and for the kernel.
struct TilePixelsWork {
  ConvGeometry geometry;
  bool forward;
  const IgemmMicroKernel<float>& micro_kernel;
  TileSink sink;
  std::vector<PanelPhase> phases;
  std::int64_t threads;
  TileFilter filter;
  std::int64_t staged = 0, buffer = 0, packed = 0;  // elements; `staged` and `buffer` per thread
  // Backward-data with stride > 1: offsets of the pixels of dx that no tap reaches relative to a
  // reached one, if they are the same for all. They are zeroed along with it, with non-temporal
  // stores if dx is large.
  std::vector<std::int64_t> gaps;
  bool streams_gaps;

  TilePixelsWork(const Region& region, const DeviceProps& device)
      : geometry(*region.anchor),
        forward(is_forward(region)),
        micro_kernel(igemm_micro_kernel<float>()),
        sink(region, geometry),
        threads(std::max(device.compute_units, 1)),
        filter(region.prologues[1], geometry, forward, kPanelColumns),
        streams_gaps(static_cast<std::int64_t>(region.bytes()) > device.l3_bytes / 2) {
    const TileProblem problem = problem_of(region, geometry);
    std::vector<ConvPhase> grids = phases_of(geometry, region);
    if (leaves_gaps(grids)) {
      const ViewStrides distances(sink.post_ops().result, geometry.spatial);
      for (std::size_t i = 1; i < grids.size(); ++i)
        gaps.push_back(offset_of(grids[i].origin, distances));
      grids.resize(1);
    }
    for (ConvPhase& phase : grids) {
      phases.push_back(
          make_panel_phase(std::move(phase), problem, filter_results(), !sink.is_direct(), device));
      const PanelPhase& added = phases.back();
      staged = std::max(staged, round_up(added.staged_elements(), kLine));
      if (!sink.is_direct())
        buffer = std::max(buffer, added.most.pixels() * added.resident * kPanelColumns);
      packed += filter.elements(added.grid);
    }
  }
  TilePixelsWork(const TilePixelsWork&) = delete;

  std::int64_t filter_results() const { return forward ? geometry.filters : geometry.channels; }
  // Pixel stride of the buffer.
  std::int64_t buffer_width(const PanelPhase& phase) const {
    return round_up(std::min(phase.resident * kPanelColumns, filter_results()), kLine);
  }
  std::int64_t per_thread() const { return staged + buffer * (sink.turns() ? 2 : 1); }
  std::int64_t scratch_bytes() const {
    return static_cast<std::int64_t>(sizeof(float)) * (threads * per_thread() + packed);
  }

 private:
  // Whether all taps belong to the first phase, all phases have the same extents, and dx is stored
  // directly without post-ops.
  bool leaves_gaps(const std::vector<ConvPhase>& grids) const {
    if (grids.size() < 2 || !sink.is_direct() || !sink.post_ops().only_stores()) return false;
    for (std::size_t i = 0; i < grids.size(); ++i)
      if (grids[i].taps.empty() == (i == 0) || grids[i].extent != grids[0].extent) return false;
    return true;
  }
  static std::int64_t offset_of(const Spatial& position, const ViewStrides& distances) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      offset += position[axis] * distances.axis[axis];
    return offset;
  }
};

class TilePixelsKernel final : public Kernel {
 public:
  TilePixelsKernel(const Region& region, const DeviceProps& device)
      : work_(region, device),
        filter_program_(region.prologues[1]),
        source_view_(region.prologues[0].is_plain_load() ? region.prologues[0].steps[0].view
                                                         : View{}) {
    const TileSink& sink = work_.sink;
    const std::int64_t channels = work_.forward ? work_.geometry.channels : work_.geometry.filters;
    const Spatial& extents = work_.forward ? work_.geometry.x : work_.geometry.y;
    for (const PanelPhase& phase : work_.phases) {
      sources_.emplace_back(region.prologues[0], work_.geometry, extents, channels,
                            phase.staged_step(kMaxSpatial - 1));
      result_offsets_.push_back(sink.is_direct() ? offsets_in(phase, sink.post_ops().result)
                                                 : offsets_in_buffer(phase));
      addend_offsets_.push_back(
          offsets_in(phase, sink.is_direct() ? sink.post_ops().addend : View{}));
    }
    reserve_scratch(true);
  }

  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(filter_program_, constants)) return;
    prepacked_.allocate(work_.packed);
    pack(constants, prepacked_.data());
    reserve_scratch(false);
  }

  void run(const KernelContext& context) const override {
    const float* panels = prepacked_.data();
    if (panels == nullptr) {
      float* scratch = context.scratch<float>(scratch_layout_, panels_);
      pack(context, scratch);
      panels = scratch;
    }
    for (std::size_t i = 0; i < work_.phases.size(); ++i) {
      run_phase(i, panels, context);
      panels += work_.filter.elements(work_.phases[i].grid);
    }
  }

 private:
  std::vector<std::int64_t> offsets_in(const TilePhase& phase, const View& view) const {
    if (!view.present()) return {};
    const ViewStrides distances(view, work_.geometry.spatial);
    return result_offsets(phase, {distances.a, distances.axis});
  }

  std::vector<std::int64_t> offsets_in_buffer(const PanelPhase& phase) const {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(phase.most.pixels()));
    for (std::size_t i = 0; i < offsets.size(); ++i)
      offsets[i] = static_cast<std::int64_t>(i) * work_.buffer_width(phase);
    return offsets;
  }

  void reserve_scratch(bool with_panels) {
    scratch_layout_ = ScratchLayout();
    const auto bytes = static_cast<std::int64_t>(sizeof(float));
    blocks_ = scratch_layout_.add("blocks", work_.threads * work_.per_thread() * bytes);
    if (with_panels) panels_ = scratch_layout_.add("filter panels", work_.packed * bytes);
  }

  void pack(const KernelContext& context, float* destination) const {
    for (const TilePhase& phase : work_.phases) {
      work_.filter.pack(phase.grid, context, destination);
      destination += work_.filter.elements(phase.grid);
    }
  }

  // Bound operands of the blocks of a phase.
  struct Bound {
    const PanelPhase& phase;
    const TileSource::Bound& source;
    const TileSink::Bound& sink;
    const float *panels, *panels_end;
    const std::vector<std::int64_t>& result_offsets;
    const std::vector<std::int64_t>& addend_offsets;
    const KernelContext& context;
  };

  void run_phase(std::size_t number, const float* panels, const KernelContext& context) const {
    const PanelPhase& phase = work_.phases[number];
    const TileSource::Bound source(sources_[number], context);
    const TileSink::Bound sink(work_.sink, context);
    const Bound bound{phase,
                      source,
                      sink,
                      panels,
                      panels + work_.filter.elements(phase.grid),
                      result_offsets_[number],
                      addend_offsets_[number],
                      context};
    const std::int64_t blocks = phase.block_count(),
                       tasks = blocks * work_.geometry.groups * phase.splits;
    float* scratch = context.scratch<float>(scratch_layout_, blocks_);
    // No more threads than have scratch.
    const std::int64_t grain = divide_up(tasks, work_.threads);
    parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
      float* memory = scratch + thread * work_.per_thread();
      const std::int64_t all = work_.filter.panels();
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t split = task % phase.splits, rest = task / phase.splits;
        const std::int64_t group = rest / blocks;
        const TileBlock block = phase.block(rest % blocks);
        const float* a =
            phase.in_place ? in_place(bound, block, group) : stage(bound, block, group, memory);
        const std::int64_t last = all * (split + 1) / phase.splits;
        for (std::int64_t panel = all * split / phase.splits; panel < last; panel += phase.resident)
          multiply(bound, block, group, panel, std::min(panel + phase.resident, last), a,
                   memory + work_.staged);
      }
    });
  }

  const float* in_place(const Bound& bound, const TileBlock& block, std::int64_t group) const {
    const TilePhase& phase = bound.phase;
    Spatial position;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      position[axis] = phase.source_at(block, axis, 0);
    ConvCoords coords;
    work_.geometry.put(block.image, group * phase.channels, position, coords.data());
    return element_at<float>(source_view_, coords.data(), bound.context);
  }

  const float* stage(const Bound& bound, const TileBlock& block, std::int64_t group,
                     float* memory) const {
    const TilePhase& phase = bound.phase;
    if (!phase.grid.taps.empty()) stage_block(phase, block, group, bound.source, memory);
    return memory;
  }

  // Whether to prefetch the source pixels: tiles of a single tap are contiguous, and short K
  // finishes a tile before the hardware prefetcher fetches the next.
  static bool prefetches_pixels(const TilePhase& phase) {
    constexpr std::int64_t kShortK = 128;
    return phase.in_place && phase.grid.taps.size() == 1 && phase.channels <= kShortK &&
           phase.pixel_offsets.size() > 1 && phase.pixel_offsets[1] == phase.channels;
  }

  // Multiplies panels [first, last) with all tiles of a block.
  void multiply(const Bound& bound, const TileBlock& block, std::int64_t group, std::int64_t first,
                std::int64_t last, const float* a, float* buffer) const {
    const PanelPhase& phase = bound.phase;
    const TileSink& sink = work_.sink;
    const std::int64_t results = work_.filter_results();
    const std::int64_t pixels = block.pixels(), tiles = divide_up(pixels, kMaxTileRows);
    const std::int64_t channel = group * results + first * kPanelColumns,
                       channels = std::min(last * kPanelColumns, results) - first * kPanelColumns;
    const std::int64_t panel_elements = work_.filter.panel_elements(phase.grid);
    const float* b = bound.panels + (group * work_.filter.panels() + first) * panel_elements;

    IgemmMicroArgs<float> o;
    o.b_row = kPanelColumns;
    GemmPostOps<float> post_ops;
    float* c = buffer;
    const float *bias = nullptr, *addend = nullptr;
    if (sink.is_direct()) {
      const PostOpsPattern& pattern = sink.post_ops();
      c = bound.sink.start(pattern.result, phase, block, channel);
      bias = bound.sink.start(pattern.bias, phase, block, channel);
      addend = bound.sink.start(pattern.addend, phase, block, channel);
      post_ops.low = static_cast<float>(pattern.low);
      post_ops.high = static_cast<float>(pattern.high);
    }
    o.rows = pixels;
    o.a_rows = phase.pixel_offsets.data();
    o.c_rows = bound.result_offsets.data();
    o.addend_rows = bound.addend_offsets.data();
    const bool finishes = sink.is_direct() && !sink.post_ops().only_stores();
    for (std::size_t i = 0; i < phase.slices.size(); ++i) {
      const TileSlice& slice = phase.slices[i];
      o.accumulate = i > 0;
      o.post_ops = finishes && i + 1 == phase.slices.size() ? &post_ops : nullptr;
      o.segments = slice.segments;
      o.k = slice.k;
      o.a = a + slice.start;
      o.a_segments = phase.segment_offsets.data() + slice.segment;
      const float* slice_b =
          b + (slice.segment * phase.run * phase.channels + slice.start) * kPanelColumns;
      const std::int64_t slice_k = slice.segments * slice.k;
      const std::int64_t passing =
          last - first == 1 ? slice_k * kPanelColumns : (last - first) * panel_elements;
      const std::int64_t upcoming =
          std::min(slice_b + 2 * passing, bound.panels_end) - (slice_b + passing);
      o.next = slice_b + passing;
      o.next_lines = slice_k;
      o.next_tile = slice_k * kLine;
      o.next_tiles = slice_k > 0 ? upcoming / o.next_tile : 0;
      for (std::int64_t column = 0; column < channels; column += work_.micro_kernel.columns) {
        o.columns = std::min(work_.micro_kernel.columns, channels - column);
        o.b = slice_b + column / kPanelColumns * panel_elements + column % kPanelColumns;
        o.c = c + column;
        if (bias != nullptr) post_ops.bias = bias + column;
        if (addend != nullptr) {
          post_ops.addend = o.extra_prefetch = addend + column;
          o.extra_prefetch_rows = o.addend_rows;
        }
        if (i == 0) clear_gaps(o);
        if (first + column == 0 && prefetches_pixels(phase)) {
          IgemmMicroArgs<float> with_pixels = o;
          with_pixels.next = a + kMaxTileRows * phase.channels;
          with_pixels.next_tile = kMaxTileRows * phase.channels;
          with_pixels.next_lines = divide_up(with_pixels.next_tile, kLine);
          with_pixels.next_tiles = tiles - 1;
          work_.micro_kernel.multiply(with_pixels);
          continue;
        }
        work_.micro_kernel.multiply(o);
        o.next += tiles * o.next_tile;
        o.next_tiles -= tiles;
      }
    }
    if (!sink.is_direct())
      bound.sink.store(phase, block, channel, channels, buffer, work_.buffer_width(phase),
                       buffer + work_.buffer);
  }

  // Zeroes the gaps next to the rows of a tile; the stores overlap with its computation.
  void clear_gaps(const IgemmMicroArgs<float>& o) const {
    alignas(64) static constexpr std::array<float, kMaxTileColumns> kZeros{};
    const std::int64_t bytes = o.columns * static_cast<std::int64_t>(sizeof(float));
    for (const std::int64_t gap : work_.gaps)
      for (std::int64_t i = 0; i < o.rows; ++i) {
        float* pixel = o.c + o.c_rows[i] + gap;
        if (work_.streams_gaps)
          stream_row(kZeros.data(), bytes, pixel);
        else
          std::memset(pixel, 0, static_cast<std::size_t>(bytes));
      }
  }

  TilePixelsWork work_;
  PointwiseProgram filter_program_;
  View source_view_;
  std::vector<TileSource> sources_;  // by phase, like the offsets
  std::vector<std::vector<std::int64_t>> result_offsets_, addend_offsets_;
  PrepackedBuffer<float> prepacked_;  // prepacked constant panels
  int blocks_ = 0, panels_ = 0;
};

}  // namespace ashlar::cpu
