// 3 x 3 convolutions of stride 1 with fewer products than taps (Winograd).
#include "base/checked.hpp"
#include "cpu/constants.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/winograd_blocks.hpp"
#include "cpu/winograd_filter.hpp"
#include "cpu/winograd_result.hpp"
#include "cpu/winograd_source.hpp"

namespace ashlar::cpu {

namespace {

// Rows of a panel of U that stay in L1 beside the rows of V.
constexpr std::int64_t kDeepest = 256;

// Forward and backward-data. With C summed channels and K of the result, per block of T tiles:
//   V[point][T][C]   from the source
//   M[point][T][K']  products with panels of U, K' columns at a time
//   the result       from M
class WinogradConvKernel final : public Kernel {
 public:
  WinogradConvKernel(const Region& region, const Config& config)
      : blocks_(WinogradBlocks::from_knobs(config)),
        geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        shape_(geometry_, forward_, blocks_.outputs),
        kernel_(winograd_kernel(static_cast<int>(blocks_.outputs), 3)),
        product_(panel_product<float>()),
        weights_(region.prologues[1]),
        source_(region.prologues[0], shape_, kernel_),
        filter_(region.prologues[1], forward_, shape_, kernel_),
        result_(region, geometry_, shape_, kernel_) {
    v_tile_ = round_up(shape_.depth, kLine);
    m_tile_ = blocks_.panels * product_.columns;
    v_point_ = blocks_.tiles * v_tile_ + kLine;
    m_point_ = blocks_.tiles * m_tile_ + kLine;
    block_floats_ = shape_.points() * (v_point_ + m_point_);
    stage_floats_ = round_up(std::max(source_.stage_size(), result_.stage_size()), kLine);
    book(true);
  }

  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(weights_, constants)) return;
    kept_.resize(static_cast<std::size_t>(filter_.floats() + kLine));
    filter_.transform(constants, kept_filter());
    scratch_book_ = {};
    book(false);
  }

  void run(const KernelContext& context) const override {
    const float* u = kept_.empty() ? context.scratch<float>(scratch_book_, u_booking_)
                                   : const_cast<WinogradConvKernel*>(this)->kept_filter();
    if (kept_.empty())
      filter_.transform(context, context.scratch<float>(scratch_book_, u_booking_));
    float* blocks = context.scratch<float>(scratch_book_, block_booking_);
    float* stages = context.scratch<float>(scratch_book_, stage_booking_);
    const WinogradSource::Bound source(source_, context);
    const WinogradResult::Bound result(result_, context,
                                       context.scratch<float>(scratch_book_, finish_booking_));
    const std::int64_t per_group = divide_up(shape_.tile_count(), blocks_.tiles);
    if (!blocks_.shared) {
      const std::int64_t items = shape_.groups * per_group;
      // No more threads than have memory.
      parallel_for(items, divide_up(items, blocks_.threads),
                   [&](std::int64_t begin, std::int64_t end, int thread) {
                     for (std::int64_t item = begin; item < end; ++item)
                       run_block(source, result, u, item / per_group, item % per_group,
                                 blocks + thread * block_floats_, stages + thread * stage_floats_);
                   });
      return;
    }
    for (std::int64_t item = 0; item < shape_.groups * per_group; ++item)
      run_shared(source, result, u, item / per_group, item % per_group, blocks, stages);
  }

 private:
  static constexpr std::int64_t kLine = 16;  // floats

  void book(bool with_filter) {
    const auto floats = [](std::int64_t count) {
      return checked_mul(count, static_cast<std::int64_t>(sizeof(float)));
    };
    if (with_filter) u_booking_ = scratch_book_.add("filter", floats(filter_.floats()));
    block_booking_ = scratch_book_.add(
        "tiles", floats(checked_mul(blocks_.shared ? 1 : blocks_.threads, block_floats_)));
    stage_booking_ = scratch_book_.add("stage", floats(blocks_.threads * stage_floats_));
    finish_booking_ = scratch_book_.add("finish", floats(result_.finish_size()));
  }
  float* kept_filter() {
    const auto address = reinterpret_cast<std::uintptr_t>(kept_.data());
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
  }
  std::int64_t first_tile(std::int64_t block) const { return block * blocks_.tiles; }
  std::int64_t tiles_of(std::int64_t block) const {
    return std::min(blocks_.tiles, shape_.tile_count() - first_tile(block));
  }

  void run_block(const WinogradSource::Bound& source, const WinogradResult::Bound& result,
                 const float* u, std::int64_t group, std::int64_t block, float* v,
                 float* stage) const {
    float* m = v + shape_.points() * v_point_;
    const std::int64_t tiles = tiles_of(block), panels = filter_.panels();
    transform(source, group, first_tile(block), tiles, v, stage);
    for (std::int64_t panel = 0; panel < panels; panel += blocks_.panels) {
      const std::int64_t count = std::min(blocks_.panels, panels - panel);
      for (std::int64_t point = 0; point < shape_.points(); ++point)
        for (std::int64_t p = 0; p < count; ++p)
          multiply(group * panels + panel + p, point, tiles, v, u,
                   m + point * m_point_ + p * product_.columns);
      write(result, group, first_tile(block), tiles, panel, count, m, stage);
    }
  }

  void run_shared(const WinogradSource::Bound& source, const WinogradResult::Bound& result,
                  const float* u, std::int64_t group, std::int64_t block, float* v,
                  float* stages) const {
    float* m = v + shape_.points() * v_point_;
    const std::int64_t first = first_tile(block), tiles = tiles_of(block);
    const std::int64_t panels = filter_.panels();
    const auto split = [&](std::int64_t items, auto&& body) {
      parallel_for(items, divide_up(items, blocks_.threads), body);
    };
    split(tiles, [&](std::int64_t begin, std::int64_t end, int thread) {
      transform(source, group, first + begin, end - begin, v + begin * v_tile_,
                stages + thread * stage_floats_);
    });
    split(shape_.points() * panels, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t point = item / panels, panel = item % panels;
        multiply(group * panels + panel, point, tiles, v, u,
                 m + point * m_point_ + panel * product_.columns);
      }
    });
    split(tiles, [&](std::int64_t begin, std::int64_t end, int thread) {
      write(result, group, first + begin, end - begin, 0, panels, m + begin * m_tile_,
            stages + thread * stage_floats_);
    });
  }

  void transform(const WinogradSource::Bound& source, std::int64_t group, std::int64_t first,
                 std::int64_t count, float* v, float* stage) const {
    for_tile_runs(shape_, first, count, [&](const TileRun& run, std::int64_t done) {
      source.transform(run, group, {v + done * v_tile_, v_point_, v_tile_}, stage);
    });
  }

  // One panel of M at one point. `panel` counts through all groups.
  void multiply(std::int64_t panel, std::int64_t point, std::int64_t tiles, const float* v,
                const float* u, float* m) const {
    const std::int64_t row_blocks = divide_up(tiles, product_.rows);
    const std::int64_t pieces = divide_up(shape_.depth, kDeepest);
    PanelOperands<float> operands;
    operands.columns = product_.columns;
    operands.a_row = v_tile_;
    operands.b_row = product_.columns;
    operands.c_row = m_tile_;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = shape_.depth * piece / pieces;
      operands.depth = shape_.depth * (piece + 1) / pieces - begin;
      operands.accumulate = piece > 0;
      operands.b =
          u + panel * filter_.panel_floats() + point * filter_.point() + begin * product_.columns;
      for (std::int64_t block = 0; block < row_blocks; ++block) {
        const std::int64_t row = tiles * block / row_blocks;
        operands.rows = tiles * (block + 1) / row_blocks - row;
        operands.a = v + point * v_point_ + row * v_tile_ + begin;
        operands.c = m + row * m_tile_;
        product_.strided(operands);
      }
    }
  }

  void write(const WinogradResult::Bound& result, std::int64_t group, std::int64_t first,
             std::int64_t count, std::int64_t panel, std::int64_t panels, const float* m,
             float* stage) const {
    const std::int64_t channel = panel * product_.columns;
    const std::int64_t channels = std::min(panels * product_.columns, shape_.results - channel);
    for_tile_runs(shape_, first, count, [&](const TileRun& run, std::int64_t done) {
      result.write(run, group, channel, channels, m + done * m_tile_, m_point_, m_tile_, stage);
    });
  }

  WinogradBlocks blocks_;
  ConvGeometry geometry_;
  bool forward_;
  WinogradShape shape_;
  const WinogradKernel& kernel_;
  const PanelProduct<float>& product_;
  PointwiseProgram weights_;
  WinogradSource source_;
  WinogradFilter filter_;
  WinogradResult result_;
  std::int64_t v_tile_, m_tile_, v_point_, m_point_, block_floats_, stage_floats_;
  int u_booking_ = -1, block_booking_ = -1, stage_booking_ = -1, finish_booking_ = -1;
  std::vector<float> kept_;  // U of constant weights, from the first whole cache line on
};

class ConvWinogradEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_winograd"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "3 x 3 convolution of stride 1 in Winograd tiles, a quarter of the products";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<ConvForward>() && !region.anchor_as<ConvBackwardData>())
      return Support::other_operation("the anchor is no forward or backward-data convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial != 2) return Support::no("{} spatial axes, 2 are supported", spatial);
    for (const View& view : region.anchor->inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    if (region.precision() != f32) return Support::no("sums of {}", to_string(region.precision()));
    const ConvGeometry geometry(*region.anchor);
    for (std::size_t axis = 1; axis < kMaxSpatial; ++axis) {
      if (geometry.window[axis] != 3)
        return Support::no("a window of {}, 3 is supported", geometry.window[axis]);
      if (geometry.stride[axis] != 1 || geometry.dilation[axis] != 1)
        return Support::no("stride {} and dilation {}, 1 is supported", geometry.stride[axis],
                           geometry.dilation[axis]);
    }
    constexpr std::int64_t kFewest = 16;
    if (geometry.channels < kFewest || geometry.filters < kFewest)
      return Support::no("{} channels and {} filters per group, at least {} of each",
                         geometry.channels, geometry.filters, kFewest);
    if (element_count(region.epilogue.space) == 0) return Support::no("nothing to compute");
    return Support::yes();
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
