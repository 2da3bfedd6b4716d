// Winograd F(m x m, 3 x 3) convolution of stride 1, forward and backward-data.
#include "base/checked.hpp"
#include "cpu/constants.hpp"
#include "cpu/conv/winograd_blocks.hpp"
#include "cpu/conv/winograd_filter.hpp"
#include "cpu/conv/winograd_result.hpp"
#include "cpu/conv/winograd_source.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/igemm_micro_kernel.hpp"

namespace ashlar::cpu {

namespace {

// With C reduced channels and panels of K' result channels, per block of T tiles:
//   V[point][T][C]   input transform of the source
//   M[point][T][K']  GEMM with one panel of U
//   the result       output transform of M
class WinogradConvKernel final : public Kernel {
 public:
  WinogradConvKernel(const Region& region, const Config& config)
      : blocks_(WinogradBlocks::from_knobs(config)),
        geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        shape_(geometry_, forward_, blocks_.outputs),
        kernel_(winograd_kernel(static_cast<int>(blocks_.outputs), 3)),
        micro_kernel_(igemm_micro_kernel<float>()),
        weights_(region.prologues[1]),
        source_(region.prologues[0], source_grid(shape_), kernel_.input, kernel_.lanes),
        filter_(region.prologues[1], forward_, shape_, kernel_),
        result_(region, geometry_, shape_, kernel_) {
    v_tile_ = round_up(shape_.k, kLine);
    v_point_ = blocks_.tiles * v_tile_ + kLine;
    m_point_ = blocks_.tiles * micro_kernel_.columns + kLine;
    u_point_ = blocks_.k * micro_kernel_.columns + kLine;
    for (std::int64_t tile = 0; tile < blocks_.tiles; ++tile) {
      v_rows_.push_back(tile * v_tile_);
      m_rows_.push_back(tile * micro_kernel_.columns);
    }
    stage_floats_ = round_up(std::max(source_.stage_size(), result_.stage_size()), kLine);
    reserve_scratch(true);
  }

  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(weights_, constants)) return;
    prepacked_.allocate(filter_.floats());
    filter_.transform(constants, prepacked_.data());
    scratch_layout_ = {};
    reserve_scratch(false);
  }

  void run(const KernelContext& context) const override {
    Run run{
        .source = {source_, context},
        .filter = {filter_, context},
        .result = {result_, context, context.scratch<float>(scratch_layout_, finish_reservation_)},
        .u = prepacked_.data(),
        .own_u = nullptr,
        .v = context.scratch<float>(scratch_layout_, v_reservation_),
        .m = context.scratch<float>(scratch_layout_, m_reservation_),
        .stages = context.scratch<float>(scratch_layout_, stage_reservation_)};
    if (prepacked_.data() == nullptr) {
      float* u = context.scratch<float>(scratch_layout_, u_reservation_);
      if (blocks_.shared)
        run.own_u = u;
      else
        filter_.transform(context, u), run.u = u;
    }
    const std::int64_t per_group = block_count();
    const std::int64_t items = shape_.groups * per_group;
    if (blocks_.shared) {
      for (std::int64_t item = 0; item < items; ++item)
        run_together(run, item / per_group, item % per_group);
    } else {
      split(items, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t item = begin; item < end; ++item)
          run_alone(run, item / per_group, item % per_group, thread);
      });
    }
  }

 private:
  static constexpr std::int64_t kLine = 16;  // floats
  // KC: rows of a panel of U that stay in L1 together with the rows of V.
  static constexpr std::int64_t kDeepest = 256;

  struct Run {
    WinogradSource::Bound source;
    WinogradFilter::Bound filter;
    WinogradResult::Bound result;
    const float* u;  // all of U; null: every thread transforms the slices it needs into its own_u
    float *own_u, *v, *m, *stages;
  };

  // Tiles of a group and the panel that a thread multiplies.
  struct Part {
    std::int64_t group, panel, tile, tiles;
    int thread;
  };

  void reserve_scratch(bool with_filter) {
    const auto add = [&](const char* name, std::int64_t count, std::int64_t floats) {
      return scratch_layout_.add(
          name, checked_mul(checked_mul(count, floats), static_cast<std::int64_t>(sizeof(float))));
    };
    const std::int64_t points = shape_.points(), threads = blocks_.threads;
    if (with_filter)
      u_reservation_ = blocks_.shared ? add("filter", threads, points * u_point_)
                                      : add("filter", 1, filter_.floats());
    v_reservation_ = add("tiles", blocks_.shared ? 1 : threads, points * v_point_);
    m_reservation_ = add("sums", threads, points * m_point_);
    stage_reservation_ = add("stage", threads, stage_floats_);
    finish_reservation_ = add("finish", 1, result_.post_ops_size());
  }
  // No more threads than have scratch.
  template <class Body>
  void split(std::int64_t items, Body&& body) const {
    parallel_for(items, divide_up(items, blocks_.threads), body);
  }
  // Even blocks: a thread may have few of them.
  std::int64_t block_count() const { return divide_up(shape_.tile_count(), blocks_.tiles); }
  std::int64_t first_tile(std::int64_t block) const {
    return shape_.tile_count() * block / block_count();
  }
  std::int64_t tiles_of(std::int64_t block) const {
    return first_tile(block + 1) - first_tile(block);
  }

  // A block whose V is in this thread's L2; U is streamed.
  void run_alone(const Run& run, std::int64_t group, std::int64_t block, int thread) const {
    float* v = run.v + thread * shape_.points() * v_point_;
    const std::int64_t first = first_tile(block), tiles = tiles_of(block);
    transform(run, group, first, tiles, v, thread);
    for (std::int64_t panel = 0; panel < filter_.panels(); ++panel) {
      const std::int64_t number = group * filter_.panels() + panel;
      multiply(run, {group, panel, first, tiles, thread}, v, 0, shape_.k,
               run.u + number * filter_.panel_floats(), filter_.point());
      write(run, group, first, tiles, panel, thread);
    }
  }

  // A block of V shared by all threads in L3. Panels are distributed; each is transformed,
  // multiplied and written by one thread, U slice by slice, so that it stays in L2.
  void run_together(const Run& run, std::int64_t group, std::int64_t block) const {
    const std::int64_t first = first_tile(block), tiles = tiles_of(block);
    split(tiles, [&](std::int64_t begin, std::int64_t end, int thread) {
      transform(run, group, first + begin, end - begin, run.v + begin * v_tile_, thread);
    });
    split(filter_.panels(), [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        const std::int64_t number = group * filter_.panels() + panel;
        if (run.u != nullptr)
          multiply(run, {group, panel, first, tiles, thread}, run.v, 0, shape_.k,
                   run.u + number * filter_.panel_floats(), filter_.point());
        else
          multiply_fresh(run, {group, panel, first, tiles, thread});
        write(run, group, first, tiles, panel, thread);
      }
    });
  }

  float* sums(const Run& run, int thread) const {
    return run.m + thread * shape_.points() * m_point_;
  }

  void multiply_fresh(const Run& run, const Part& part) const {
    float* u = run.own_u + part.thread * shape_.points() * u_point_;
    for (std::int64_t first = 0; first < shape_.k; first += blocks_.k) {
      const std::int64_t count = std::min(blocks_.k, shape_.k - first);
      run.filter.transform(part.group * filter_.panels() + part.panel, first, count, u, u_point_);
      multiply(run, part, run.v, first, count, u, u_point_);
    }
  }

  void transform(const Run& run, std::int64_t group, std::int64_t first, std::int64_t count,
                 float* v, int thread) const {
    for_tile_runs(shape_.tiles, first, count, [&](const TileRun& tiles, std::int64_t done) {
      run.source.transform(tiles, group, {v + done * v_tile_, v_point_, v_tile_},
                           run.stages + thread * stage_floats_);
    });
  }

  // M = V U over channels [first, first + count), accumulated unless first is 0; `u` starts at
  // channel `first`. Prefetches the data of write() to L2.
  void multiply(const Run& run, const Part& part, const float* v, std::int64_t first,
                std::int64_t count, const float* u, std::int64_t u_point) const {
    const std::int64_t chunks = divide_up(count, kDeepest), no_offset = 0;
    IgemmMicroArgs<float> operands;
    operands.rows = part.tiles;
    operands.columns = operands.b_row = micro_kernel_.columns;
    operands.a_rows = v_rows_.data();
    operands.a_segments = &no_offset;
    operands.c_rows = m_rows_.data();
    for (std::int64_t point = 0; point < shape_.points(); ++point) {
      if (first == 0) {
        const auto pixels =
            run.result.pixels(point, part.group, part.panel * micro_kernel_.columns, part.tile);
        operands.extra_prefetch = pixels.first;
        operands.extra_prefetch_rows = pixels.tiles;
      }
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t begin = count * chunk / chunks;
        operands.k = count * (chunk + 1) / chunks - begin;
        operands.accumulate = first + begin > 0;
        operands.a = v + point * v_point_ + first + begin;
        operands.b = u + point * u_point + begin * micro_kernel_.columns;
        operands.c = sums(run, part.thread) + point * m_point_;
        micro_kernel_.multiply(operands);
      }
    }
  }

  void write(const Run& run, std::int64_t group, std::int64_t first, std::int64_t count,
             std::int64_t panel, int thread) const {
    const std::int64_t channel = panel * micro_kernel_.columns;
    const std::int64_t channels = std::min(micro_kernel_.columns, shape_.results - channel);
    for_tile_runs(shape_.tiles, first, count, [&](const TileRun& tiles, std::int64_t done) {
      run.result.write(tiles, group, channel, channels,
                       sums(run, thread) + done * micro_kernel_.columns, m_point_,
                       micro_kernel_.columns, run.stages + thread * stage_floats_);
    });
  }

  WinogradBlocks blocks_;
  ConvGeometry geometry_;
  bool forward_;
  WinogradShape shape_;
  const WinogradKernel& kernel_;
  const IgemmMicroKernel<float>& micro_kernel_;
  PointwiseProgram weights_;
  WinogradSource source_;
  WinogradFilter filter_;
  WinogradResult result_;
  std::vector<std::int64_t> v_rows_, m_rows_;  // tile offsets of a block
  std::int64_t v_tile_, v_point_, m_point_, u_point_, stage_floats_;
  int u_reservation_ = -1, v_reservation_ = -1, m_reservation_ = -1, stage_reservation_ = -1,
      finish_reservation_ = -1;
  PrepackedBuffer<float> prepacked_;  // U of constant weights
};

class ConvWinogradEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_winograd"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "Winograd 3 x 3 convolution of stride 1, F(4, 3) or F(2, 3)";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<ConvForward>() && !region.anchor_as<ConvBackwardData>())
      return Support::other_operation("the anchor is not a forward or backward-data convolution");
    return winograd_support(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return winograd_configs(region, device);
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return std::make_unique<WinogradConvKernel>(region, config);
  }
};

}  // namespace

const Engine& conv_winograd_engine() {
  static const ConvWinogradEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
