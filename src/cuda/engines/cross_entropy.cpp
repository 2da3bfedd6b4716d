// Engine for cross-entropy, forward and backward: one CTA per row, which reads the logits once, in
// vectors of 16 bytes.
#include <algorithm>
#include <array>
#include <bit>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/memory_bound.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMostLossThreads = 512, kLeastLossThreads = 32;

// What both directions have in common.
struct CrossEntropyShape {
  bool forward = true, mean = false;
  double smoothing = 0.0;
  std::int64_t ignore_index = 0, rows = 0, classes = 0;
  int vector = 1;
  Dims lines;
  std::vector<const PointwiseProgram*> programs;

  explicit CrossEntropyShape(const Region& region) {
    if (const auto* op = region.anchor_as<CrossEntropyForward>()) {
      set(*op);
    } else {
      forward = false;
      set(*region.anchor_as<CrossEntropyBackward>());
    }
    const PointwiseProgram& x = region.prologues[0];
    lines = x.space;
    const int last = lines.rank() - 1;
    classes = lines[last];
    lines[last] = 1;
    rows = element_count(lines);
    for (const PointwiseProgram& program : region.prologues) programs.push_back(&program);
    programs.push_back(&region.epilogue);
    constexpr int kMostElements = 8;
    vector = forward ? packet_length({&x}, kMostElements)
                     : packet_length({&x, &region.epilogue}, kMostElements);
  }

 private:
  template <class Op>
  void set(const Op& op) {
    mean = op.mean;
    smoothing = op.label_smoothing;
    ignore_index = op.ignore_index;
  }
};

std::int64_t scratch_bytes(const Region& region, const CrossEntropyShape& shape) {
  if (!shape.mean) return 0;
  if (!shape.forward) return sizeof(std::int64_t);
  return shape.rows * (region.precision() == f64 ? 8 : 4);
}

class CrossEntropyDesigner {
 public:
  CrossEntropyDesigner(const Graph& graph, const Region& region, std::int64_t threads,
                       std::int64_t unroll)
      : graph_(graph), region_(region), shape_(region), threads_(threads), unroll_(unroll) {}

  KernelDesign design() {
    if (shape_.mean)
      scratch_ = design_.scratch.add(shape_.forward ? "losses of rows" : "rows that count",
                                     scratch_bytes(region_, shape_));
    if (!shape_.forward && shape_.mean && shape_.rows > 0) add(true);
    if (shape_.rows > 0) add(false);
    if (shape_.forward && shape_.mean) add(true);
    return std::move(design_);
  }

 private:
  // is_mean: the launch of one CTA that adds losses or counts rows.
  void add(bool is_mean) {
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    arguments.numbers("lines", shape_.lines);
    arguments.number("rows", shape_.rows);
    arguments.number("classes", shape_.classes);
    arguments.number("ignore_index", shape_.ignore_index);
    arguments.real("smoothing", shape_.smoothing);
    const std::string scratch = shape_.forward ? "losses" : "count";
    if (shape_.mean)
      arguments.scratch(scratch, scratch_);
    else
      arguments.number(scratch, 0);
    const std::string operands = operands_text(arguments);
    const std::string head =
        register_types(region_.precision(), shape_.programs) +
        constant("kRank", shape_.lines.rank()) + constant("kThreads", threads_) +
        constant("kUnroll", unroll_) + constant("kVector", shape_.vector) +
        constant("kMean", shape_.mean) + constant("kSmooths", shape_.smoothing != 0.0) +
        constant("kIsMeanLaunch", is_mean) + arguments.struct_text() + operands;
    const std::string name = shape_.forward ? "cross_entropy_forward" : "cross_entropy_backward";
    const std::string file = name + ".cuh";
    const std::array<std::string_view, 2> files = {"cross_entropy.cuh", file};
    launch.source = {name, assemble(files, head)};
    launch.function = name;
    launch.unaligned_function = name + "_elements";
    launch.threads = static_cast<unsigned>(threads_);
    constexpr std::int64_t kMostBlocks = 1 << 20;
    launch.grid.x =
        is_mean ? 1 : static_cast<unsigned>(std::min<std::int64_t>(shape_.rows, kMostBlocks));
    launch.unaligned_grid = launch.grid;
    design_.launches.push_back(std::move(launch));
  }

  std::string operands_text(Arguments& arguments) const {
    const auto input = [&](int slot, const char* name) {
      return print_program(region_.prologues[static_cast<std::size_t>(slot)], graph_, name,
                           arguments);
    };
    const auto target = [&](int slot) {
      const PointwiseProgram& program = region_.prologues[static_cast<std::size_t>(slot)];
      return print_integer_load(program.steps[0].view, graph_, "target_of", arguments);
    };
    if (!shape_.forward) {
      using Op = CrossEntropyBackward;
      return input(Op::x, "logits_of") + target(Op::target) + input(Op::stats, "stats_of") +
             input(Op::dloss, "dloss_of") +
             print_program(region_.epilogue, graph_, "store_dx", arguments);
    }
    using Op = CrossEntropyForward;
    std::string x = input(Op::x, "logits_of");
    if (region_.prologues[Op::x].is_plain_load()) x = with_streaming_loads(std::move(x));
    const View stats = output_view(region_, Op::stats);
    return x + target(Op::target) +
           print_program(region_.epilogue, graph_, "store_loss", arguments) +
           constant("kHasStats", stats.present()) +
           (stats.present() ? print_store(stats, graph_, "store_stats", arguments)
                            : "__device__ inline void store_stats(const Args&, const Index "
                              "(&)[kRank], R) {}\n");
  }

  const Graph& graph_;
  const Region& region_;
  CrossEntropyShape shape_;
  std::int64_t threads_, unroll_;
  int scratch_ = -1;
  KernelDesign design_;
};

class CrossEntropyEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.cross_entropy"; }
  std::string_view description() const override {
    return "cross-entropy, one CTA per row, logits read once in vectors";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<CrossEntropyForward>() && !region.anchor_as<CrossEntropyBackward>())
      return Support::other_operation("the anchor is not a cross-entropy");
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    if (!region.prologues[CrossEntropyForward::target].is_plain_load())
      return Support::no("the targets are computed, not loaded");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const CrossEntropyShape shape(region);
    // Elements in flight per thread: 16 of up to 4 bytes.
    constexpr std::int64_t kInFlight = 16;
    const std::int64_t unroll = std::clamp<std::int64_t>(kInFlight / shape.vector, 1, 4);
    const auto whole_row = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(
        ceil_div(std::max<std::int64_t>(shape.classes, 1), shape.vector * unroll))));
    const std::int64_t most = std::clamp(whole_row, kLeastLossThreads, kMostLossThreads);
    std::vector<Config> result;
    for (const std::int64_t threads : {most, most / 2}) {
      if (threads < kLeastLossThreads) continue;
      Config config;
      config.knobs = {{"threads", threads}, {"unroll", unroll}};
      config.cost = cost(region, shape, device);
      config.scratch_bytes = scratch_bytes(region, shape);
      config.notes.runtime_compiled = true;
      result.push_back(std::move(config));
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps&) const override {
    return CrossEntropyDesigner(graph, region, config.knob("threads"), config.knob("unroll"))
        .design();
  }

 private:
  // Not measured: the bandwidth of cuda.reduction, and latency-bound short rows.
  static Cost cost(const Region& region, const CrossEntropyShape& shape,
                   const DeviceProps& device) {
    constexpr double kShare = 0.83, kNarrowShare = 0.5, kSecondLaunch = 2.5e-6;
    Cost cost{.flops = region.flops(), .bytes = region.bytes()};
    cost.bytes_fraction = bandwidth_fraction(shape.vector >= 4 ? kShare : kNarrowShare, cost.bytes,
                                             shape.mean ? kSecondLaunch : 0.0, device);
    return cost;
  }
};

}  // namespace

const CudaEngine& cross_entropy_engine() {
  static const CrossEntropyEngine engine;
  return engine;
}

}  // namespace ashlar::cuda
