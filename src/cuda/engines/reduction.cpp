// Engine for standalone reductions and gen_stats: x is read once in vectors and folded in a fixed
// order; where there are few outputs, CTAs split the terms and a second launch folds the partials.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/memory_bound.hpp"
#include "cuda/engines/reduction_shape.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

std::int64_t partial_bytes(const ReductionShape& shape, const ReductionTiling& tiling,
                           DType precision) {
  if (tiling.slices == 1) return 0;
  return static_cast<std::int64_t>(shape.modes.size()) * tiling.slices * shape.cells *
         (precision == f64 ? 8 : 4);
}

class ReductionDesigner {
 public:
  ReductionDesigner(const Graph& graph, const Region& region, const ReductionShape& shape,
                    const ReductionTiling& tiling)
      : graph_(graph), region_(region), shape_(shape), tiling_(tiling) {}

  KernelDesign design(std::int64_t blocks, const DeviceProps& device) {
    if (shape_.cells == 0) return {};
    if (tiling_.slices > 1)
      partial_ = design_.scratch.add("partial results",
                                     partial_bytes(shape_, tiling_, region_.precision()));
    add_pass(blocks);
    if (tiling_.slices > 1) add_sum(device);
    return std::move(design_);
  }

 private:
  void add_pass(std::int64_t blocks) {
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_numbers(arguments);
    std::string programs = print_program(shape_.x, graph_, "x_of", arguments);
    if (shape_.x.is_plain_load()) programs = with_streaming_loads(std::move(programs));
    if (tiling_.slices == 1) programs += results_text(arguments);
    const std::string head =
        facts() + constant("kTeam", tiling_.team) + constant("kUnroll", tiling_.unroll) +
        constant("kThreads", ReductionTiling::kThreads) + constant("kBlocks", blocks) +
        constant("kVector", shape_.vector) + constant("kSplit", tiling_.slices > 1 ? 1 : 0) +
        constant("kRest", shape_.rest()) + arguments.struct_text() + programs;
    constexpr std::array<std::string_view, 2> kFiles = {"reduction_modes.cuh", "reduction.cuh"};
    launch.source = {"reduction", assemble(kFiles, head)};
    launch.function = "reduction";
    launch.unaligned_function = "reduction_elements";
    launch.threads = ReductionTiling::kThreads;
    launch.grid = tiling_.grid;
    launch.unaligned_grid = tiling_.single_grid;
    design_.launches.push_back(std::move(launch));
  }

  void add_sum(const DeviceProps& device) {
    constexpr int kHopper = 90;
    constexpr std::int64_t kSumThreads = 512;
    constexpr std::int64_t kManySlices = 128, kSector = 8;
    const std::int64_t across = shape_.cells == 1               ? 1
                                : tiling_.slices >= kManySlices ? kSector
                                                                : 32;
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_numbers(arguments);
    const std::string programs = results_text(arguments);
    const std::string head = facts() + constant("kThreads", kSumThreads) +
                             constant("kCellsAcross", across) + arguments.struct_text() + programs;
    constexpr std::array<std::string_view, 3> kFiles = {"reduction_modes.cuh", "reduction_sum.cuh",
                                                        "tail_reduce.cuh"};
    launch.source = {"reduction_sum", assemble(kFiles, head)};
    launch.function = "tail_reduce";
    launch.unaligned_function = "tail_reduce";
    launch.threads = kSumThreads;
    launch.grid.x = static_cast<unsigned>(ceil_div(shape_.cells, across));
    launch.grid.y = static_cast<unsigned>(shape_.modes.size());
    launch.unaligned_grid = launch.grid;
    launch.is_dependent_launch = device.compute_capability >= kHopper;
    design_.launches.push_back(std::move(launch));
  }

  // Types and constants that both launches share.
  std::string facts() const {
    std::string modes;
    for (const int mode : shape_.modes)
      modes += fmt::format("{}{}", modes.empty() ? "" : ", ", mode);
    const auto folds = static_cast<std::int64_t>(shape_.modes.size());
    return register_types(region_.precision(), shape_.programs()) + constant("kKept", shape_.kept) +
           constant("kReduced", shape_.reduced) + constant("kColumns", shape_.columns ? 1 : 0) +
           constant("kFolds", folds) +
           constant("kInteger", is_floating(region_.anchor->compute) ? 0 : 1) +
           fmt::format("static constexpr int kModes[kFolds] = {{{}}};\n", modes);
  }

  void add_numbers(Arguments& arguments) const {
    add_extents(arguments, shape_.x.space);
    const auto divisor = [&](const std::string& name, std::int64_t value) {
      arguments.number(name, value);
      arguments.number("magic_" + name, divider_word(value));
    };
    divisor("slices", tiling_.slices);
    // Rows
    divisor("line", shape_.line);
    divisor("line_packets", shape_.line / shape_.vector);
    // Columns
    divisor("width", shape_.width);
    divisor("tiles", tiling_.tiles);
    divisor("single_tiles", tiling_.single_tiles);
    arguments.number("lanes", tiling_.lanes);
    arguments.number("single_lanes", tiling_.single_lanes);
    arguments.number("outers", shape_.outers);
    // Both
    arguments.number("cells", shape_.cells);
    arguments.number("terms", shape_.terms);
    arguments.number("packets", shape_.packets());
    arguments.number("slice_packets", tiling_.slice_packets);
    if (tiling_.slices > 1)
      arguments.scratch("partial", partial_);
    else
      arguments.number("partial", 0);
  }

  // template <int kNumber, int kCount>
  // void store(const Args& args, const Index (&at)[kKept], R (&values)[kCount])
  std::string results_text(Arguments& arguments) const {
    std::string programs, calls;
    for (std::size_t i = 0; i < shape_.results.size(); ++i) {
      programs += print_program(shape_.results[i], graph_, fmt::format("store{}", i), arguments);
      calls +=
          fmt::format("  if constexpr (kNumber == {0}) store{0}<kCount>(args, at, values);\n", i);
    }
    return programs +
           "template <int kNumber, int kCount>\n"
           "__device__ inline void store(const Args& args, const Index (&at)[kKept], "
           "R (&values)[kCount]) {\n" +
           calls + "}\n";
  }

  const Graph& graph_;
  const Region& region_;
  const ReductionShape& shape_;
  const ReductionTiling& tiling_;
  int partial_ = -1;
  KernelDesign design_;
};

class ReductionEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.reduction"; }
  std::string_view description() const override {
    return "reductions over any axes, vectorised, folded in a fixed order";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Reduction>() && !region.anchor_as<GenStats>())
      return Support::other_operation("the anchor is not a reduction");
    if (region.anchor_as<Reduction>() && output_view(region, Reduction::index).present())
      return Support::no("the index output (arg min / arg max) is not supported");
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    for (const PointwiseProgram* program : {&region.prologues[0], &region.epilogue})
      if (reads_coordinates(*program)) return Support::no("a fused operation reads coordinates");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ReductionShape shape(region);
    std::vector<Config> result;
    // Elements in flight per thread, and the CTAs per SM that the registers then allow.
    const std::int64_t wide = region.precision() == f64 ? 2 : 1;
    for (const auto& [numbers, blocks] : {std::pair{64, 2}, {32, 4}, {32, 3}}) {
      const std::int64_t together = numbers / (shape.vector * wide * std::max(shape.loads, 1));
      const auto unroll = static_cast<std::int64_t>(std::bit_floor(
          static_cast<std::uint64_t>(std::clamp<std::int64_t>(together, 1, kMaxUnroll))));
      for (const bool split : {true, false}) {
        const ReductionTiling tiling(shape, unroll, blocks, split, device);
        if (split && tiling.slices == 1) continue;
        Config config;
        config.knobs = {{"unroll", unroll}, {"blocks", blocks}, {"split", split ? 1 : 0}};
        config.scratch_bytes = partial_bytes(shape, tiling, region.precision());
        config.cost = cost(region, shape, tiling, blocks, device);
        config.notes.runtime_compiled = true;
        result.push_back(std::move(config));
      }
    }
    std::stable_sort(result.begin(), result.end(), [&](const Config& a, const Config& b) {
      return a.cost.seconds(device, region.precision()) <
             b.cost.seconds(device, region.precision());
    });
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const ReductionShape shape(region);
    const std::int64_t blocks = config.knob("blocks");
    const ReductionTiling tiling(shape, config.knob("unroll"), blocks, config.knob("split") != 0,
                                 device);
    return ReductionDesigner(graph, region, shape, tiling).design(blocks, device);
  }

 private:
  // The bandwidth fractions are those of channel_norm, which gathers statistics in the same way,
  // measured on an H200; this kernel itself has not been timed.
  static Cost cost(const Region& region, const ReductionShape& shape, const ReductionTiling& tiling,
                   std::int64_t blocks, const DeviceProps& device) {
    constexpr double kShare = 0.83, kStridedShare = 0.2, kManyWaves = 4;
    constexpr double kSecondLaunch = 2.5e-6, kChunk = 1e-6;  // seconds; kChunk: memory latency
    const double left = 2.0 * static_cast<double>(partial_bytes(shape, tiling, region.precision()));
    Cost cost{.flops = region.flops(), .bytes = region.bytes() + left};
    double share = kShare * access_share(shape);
    if (shape.is_strided) share = std::min(share, kStridedShare);
    double lost = tiling.slices > 1 ? kSecondLaunch : 0.0;
    const double waves =
        static_cast<double>(tiling.grid.x) / static_cast<double>(blocks * device.compute_units);
    if (waves <= 1) {
      // Less than one wave: latency-bound, one chunk after the other.
      const auto chunks =
          static_cast<double>(ceil_div(tiling.slice_packets, tiling.team * tiling.unroll));
      lost += std::max(chunks * kChunk - cost.bytes / (device.bytes_per_second * share), 0.0);
    } else if (waves < kManyWaves) {
      share *= waves / std::ceil(waves);
    }
    cost.bytes_fraction = bandwidth_fraction(share, cost.bytes, lost, device);
    return cost;
  }
  // Bandwidth fraction of loads narrower than 16 bytes.
  static double access_share(const ReductionShape& shape) {
    int bits = 64;
    for (const auto& step : shape.x.steps)
      if (loads_per_result(step, shape.x)) bits = std::min(bits, bit_width(step.view.dtype));
    const int bytes = std::max(shape.vector * bits / 8, 1);
    return bytes >= 16 ? 1.0 : bytes >= 8 ? 0.8 : bytes >= 4 ? 0.75 : bytes >= 2 ? 0.5 : 0.25;
  }

  static constexpr std::int64_t kMaxUnroll = 16;
};

}  // namespace

const CudaEngine& reduction_engine() {
  static const ReductionEngine engine;
  return engine;
}

}  // namespace ashlar::cuda
