// Winograd backward-filter of 3 x 3 convolution: the tile of dy acts as the filter, dw is the
// output.
#include "base/checked.hpp"
#include "cpu/conv/winograd_blocks.hpp"
#include "cpu/conv/winograd_source.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

// Per group, with C channels and K filters, over blocks of T tiles:
//   V[point][T][C]  input transform of x
//   D[point][T][K]  transform of dy
//   M[point][K][C]  sum over tiles of D^T V
// and after the last block the output transform of M to dw.
class WinogradFilterKernel final : public Kernel {
 public:
  WinogradFilterKernel(const Region& region, const Config& config)
      : blocks_(WinogradBlocks::from_knobs(config)),
        geometry_(*region.anchor),
        kernel_(winograd_kernel(3, static_cast<int>(blocks_.outputs))),
        micro_kernel_(gemm_micro_kernel<float>()),
        transpose_(transpose_tile()),
        x_(region.prologues[ConvBackwardFilter::x],
           grid(geometry_.x, geometry_.channels, blocks_.outputs + 2, geometry_.padding),
           kernel_.input, kernel_.lanes),
        dy_(region.prologues[ConvBackwardFilter::dy],
            grid(geometry_.y, geometry_.filters, blocks_.outputs, {}), kernel_.filter,
            kernel_.lanes),
        rows_(region.epilogue, z_of(region), geometry_, 1, 1) {
    for (std::size_t i = 0; i < 2; ++i) tiles_[i] = divide_up(geometry_.y[i + 1], blocks_.outputs);
    const bool blends = !z_of(region).empty() && geometry_.beta != 0.0;
    const View& view = region.epilogue.stores[0].view;
    if (region.epilogue.is_plain_store() && geometry_.alpha == 1.0 && !blends && view.dtype == f32)
      plain_ = view;
    points_ = (blocks_.outputs + 2) * (blocks_.outputs + 2);
    columns_ = round_up(geometry_.channels, kPanelColumnMultiple<float>);
    // An odd number of cache lines per row, so that columns map to all cache sets.
    v_tile_ = columns_ + kLine;
    d_tile_ = round_up(geometry_.filters, 2 * kLine) + kLine;
    v_point_ = blocks_.tiles * v_tile_;
    d_point_ = blocks_.tiles * d_tile_;
    m_point_ = geometry_.filters * columns_ + kLine;
    stage_floats_ =
        round_up(std::max({x_.stage_size(), dy_.stage_size(), kTaps * kChannelChunk}), kLine);
    const auto reserve_scratch = [&](const char* name, std::int64_t floats) {
      return scratch_layout_.add(name,
                                 checked_mul(floats, static_cast<std::int64_t>(sizeof(float))));
    };
    const std::int64_t copies = blocks_.shared ? 1 : blocks_.threads;
    v_reservation_ = reserve_scratch("tiles of x", checked_mul(copies * points_, v_point_));
    d_reservation_ = reserve_scratch("tiles of dy", checked_mul(copies * points_, d_point_));
    m_reservation_ = reserve_scratch("sums", checked_mul(copies * points_, m_point_));
    stage_reservation_ = reserve_scratch("stage", blocks_.threads * stage_floats_);
  }

  void run(const KernelContext& context) const override {
    const Run run{.x = {x_, context},
                  .dy = {dy_, context},
                  .v = context.scratch<float>(scratch_layout_, v_reservation_),
                  .d = context.scratch<float>(scratch_layout_, d_reservation_),
                  .m = context.scratch<float>(scratch_layout_, m_reservation_),
                  .stages = context.scratch<float>(scratch_layout_, stage_reservation_)};
    for (std::int64_t group = 0; group < geometry_.groups; ++group) {
      if (blocks_.shared)
        sum_together(run, group);
      else
        sum_apart(run, group);
      split(geometry_.filters, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t filter = begin; filter < end; ++filter)
          write(context, group, filter, run.m, run.stages + thread * stage_floats_);
      });
    }
  }

 private:
  static constexpr std::int64_t kLine = 16;  // floats
  static constexpr std::int64_t kTaps = 9;
  // KC: tiles per GEMM step; their rows of V's panel and D's columns share L1.
  static constexpr std::int64_t kDeepest = 128;

  PatchGrid grid(const Spatial& extents, std::int64_t channels, std::int64_t patch,
                 const Spatial& padding) const {
    return {channels, patch, blocks_.outputs, {extents[1], extents[2]}, {-padding[1], -padding[2]}};
  }
  template <class Body>
  void split(std::int64_t items, Body&& body) const {
    parallel_for(items, divide_up(items, blocks_.threads), body);
  }

  struct Run {
    WinogradSource::Bound x, dy;
    float *v, *d, *m, *stages;
  };

  std::int64_t tile_count() const { return geometry_.images * tiles_[0] * tiles_[1]; }
  std::int64_t panels() const { return divide_up(columns_, micro_kernel_.columns); }

  // All threads share one block after the other, each with its points and panels of M.
  void sum_together(const Run& run, std::int64_t group) const {
    for (std::int64_t first = 0; first < tile_count(); first += blocks_.tiles) {
      const std::int64_t count = std::min(blocks_.tiles, tile_count() - first);
      split(count, [&](std::int64_t begin, std::int64_t end, int thread) {
        transform(run, group, first + begin, end - begin, run.v + begin * v_tile_,
                  run.d + begin * d_tile_, thread);
      });
      split(points_ * panels(), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t item = begin; item < end; ++item)
          multiply(item / panels(), item % panels(), count, first > 0, run.v, run.d, run.m);
      });
    }
  }

  // Every thread has its own blocks and partial M, which are reduced at the end. The partition does
  // not depend on the thread that computes it.
  void sum_apart(const Run& run, std::int64_t group) const {
    const std::int64_t blocks = divide_up(tile_count(), blocks_.tiles);
    const std::int64_t parts = std::min(blocks, blocks_.threads), part_floats = points_ * m_point_;
    split(parts, [&](std::int64_t begin, std::int64_t end, int thread) {
      float* v = run.v + thread * points_ * v_point_;
      float* d = run.d + thread * points_ * d_point_;
      for (std::int64_t part = begin; part < end; ++part) {
        const std::int64_t first_block = blocks * part / parts;
        for (std::int64_t block = first_block; block < blocks * (part + 1) / parts; ++block) {
          const std::int64_t first = block * blocks_.tiles;
          const std::int64_t count = std::min(blocks_.tiles, tile_count() - first);
          transform(run, group, first, count, v, d, thread);
          for (std::int64_t item = 0; item < points_ * panels(); ++item)
            multiply(item / panels(), item % panels(), count, block > first_block, v, d,
                     run.m + part * part_floats);
        }
      }
    });
    split(points_, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t part = 1; part < parts; ++part) {
        const float* from = run.m + part * part_floats;
        for (std::int64_t i = begin * m_point_; i < end * m_point_; ++i) run.m[i] += from[i];
      }
    });
  }

  void transform(const Run& run, std::int64_t group, std::int64_t first, std::int64_t count,
                 float* v, float* d, int thread) const {
    float* stage = run.stages + thread * stage_floats_;
    for_tile_runs(tiles_, first, count, [&](const TileRun& tiles, std::int64_t done) {
      run.x.transform(tiles, group, {v + done * v_tile_, v_point_, v_tile_}, stage);
      run.dy.transform(tiles, group, {d + done * d_tile_, d_point_, d_tile_}, stage);
    });
  }

  void multiply(std::int64_t point, std::int64_t panel, std::int64_t tiles, bool accumulate,
                const float* v, const float* d, float* m) const {
    const std::int64_t row_blocks = divide_up(geometry_.filters, micro_kernel_.rows);
    const std::int64_t chunks = divide_up(tiles, kDeepest);
    GemmMicroArgs<float> operands;
    operands.columns = micro_kernel_.columns;
    operands.a_row = d_tile_;
    operands.b_row = v_tile_;
    operands.c_row = columns_;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t begin = tiles * chunk / chunks;
      operands.k = tiles * (chunk + 1) / chunks - begin;
      operands.accumulate = accumulate || chunk > 0;
      operands.b = v + point * v_point_ + begin * v_tile_ + panel * micro_kernel_.columns;
      for (std::int64_t block = 0; block < row_blocks; ++block) {
        const std::int64_t row = geometry_.filters * block / row_blocks;
        operands.rows = geometry_.filters * (block + 1) / row_blocks - row;
        operands.a = d + point * d_point_ + begin * d_tile_ + row;
        operands.c = m + point * m_point_ + row * columns_ + panel * micro_kernel_.columns;
        micro_kernel_.packed(operands);
      }
    }
  }

  void write(const KernelContext& context, std::int64_t group, std::int64_t filter, const float* m,
             float* stage) const {
    const std::int64_t number = group * geometry_.filters + filter;
    const float* sums = m + filter * columns_;
    if (plain_.present() && plain_.strides[1] == 1 && geometry_.channels % kernel_.lanes == 0) {
      const std::int64_t row = plain_.strides[2], tap = plain_.strides[3];
      float* first = static_cast<float*>(context.pointer(plain_.tensor)) + plain_.offset +
                     number * plain_.strides[0];
      WinogradTile tile{first, row, tap, 3, 3, nullptr};
      if (geometry_.flip) tile = {first + 2 * (row + tap), -row, -tap, 3, 3, nullptr};
      return kernel_.output(sums, m_point_, geometry_.channels, tile);
    }
    const ConvStore<float>::Bound rows(rows_, context);
    const std::int64_t last = geometry_.flip ? kTaps - 1 : 0;
    const std::int64_t sign = geometry_.flip ? -1 : 1;
    for (std::int64_t c = 0; c < geometry_.channels; c += kChannelChunk) {
      const std::int64_t count = std::min(kChannelChunk, geometry_.channels - c);
      kernel_.output(sums + c, m_point_, round_up(count, kernel_.lanes),
                     {stage + last * kChannelChunk, sign * 3 * kChannelChunk, sign * kChannelChunk,
                      3, 3, nullptr});
      if (taps_together()) {
        store_taps(context, number, c, count, stage);
        continue;
      }
      for (std::int64_t tap = 0; tap < kTaps; ++tap)
        rows.row({number, c, tap / 3, tap % 3}, 1, 1, count, stage + tap * kChannelChunk);
    }
  }

  bool taps_together() const {
    return plain_.present() && plain_.strides[3] == 1 && plain_.strides[2] == 3 &&
           plain_.strides[1] == kTaps;
  }
  void store_taps(const KernelContext& context, std::int64_t number, std::int64_t channel,
                  std::int64_t count, const float* stage) const {
    float* to = static_cast<float*>(context.pointer(plain_.tensor)) + plain_.offset +
                number * plain_.strides[0] + channel * kTaps;
    transpose_(stage, kChannelChunk, kTaps, count, to, kTaps);
  }

  WinogradBlocks blocks_;
  ConvGeometry geometry_;
  const WinogradKernel& kernel_;
  const GemmMicroKernel<float>& micro_kernel_;
  TransposeTile transpose_;
  WinogradSource x_, dy_;
  ConvStore<float> rows_;
  View plain_;  // dw, if the result is stored directly
  std::int64_t tiles_[2];
  std::int64_t points_, columns_, v_tile_, d_tile_, v_point_, d_point_, m_point_, stage_floats_;
  int v_reservation_, d_reservation_, m_reservation_, stage_reservation_;
};

class ConvWinogradFilterEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_winograd_filter"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "Winograd backward-filter of 3 x 3 convolution of stride 1";
  }
  bool stores_last(const Region& region) const override {
    return region.anchor_as<ConvBackwardFilter>() != nullptr;
  }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<ConvBackwardFilter>())
      return Support::other_operation("the anchor is not a backward-filter convolution");
    return winograd_support(region);
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return winograd_filter_configs(region, device);
  }
  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return std::make_unique<WinogradFilterKernel>(region, config);
  }
};

}  // namespace

const Engine& conv_winograd_filter_engine() {
  static const ConvWinogradFilterEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
