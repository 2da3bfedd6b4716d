// Engine for layer, RMS and adaptive layer norm and softmax, forward and backward. Every row is
// read once and stays in registers or shared memory; long rows are split over a cluster that
// exchanges partial sums by DSMEM. dscale and dbias are reduced in two steps of fixed order.
#include "cuda/engines/engines.hpp"
#include "cuda/engines/row_norm/row_layout.hpp"
#include "cuda/engines/row_norm/row_text.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using RowKind = RowProblem::Kind;

// CTA of the second reduction step. 8 columns are one 32-byte sector of memory, so that even few
// columns fill many CTAs.
constexpr int kSumThreads = 256, kSumsPerBlock = 8;

std::string_view name_of(RowKind kind) {
  switch (kind) {
    case RowKind::norm_forward: return "row_norm_forward";
    case RowKind::norm_backward: return "row_norm_backward";
    case RowKind::softmax_forward: return "row_softmax_forward";
    case RowKind::softmax_backward: break;
  }
  return "row_softmax_backward";
}

std::string flag(const std::string& name, bool value) {
  return fmt::format("static const bool {} = {};\n", name, value);
}

// Types, arguments and constants that both launches share.
std::string spec_text(const RowProblem& problem, const RowLayout& layout, bool whole_tiles,
                      const Arguments& arguments) {
  return register_types(problem.precision, problem.programs()) + arguments.struct_text() +
         constant("kRank", problem.space.rank()) +
         fmt::format(
             "struct Spec {{\n"
             "  typedef ::R R;\n  typedef ::Index Index;\n  typedef ::Args Args;\n"
             "  static const int kRank = ::kRank, kLength = {}, kThreads = {}, kRowThreads = {};\n"
             "  static const int kUnroll = {}, kStages = {}, kStageBytes = {}, kPipelineOffset = "
             "{};\n"
             "  static const int kSlices = {}, kSliceLength = {};\n"
             "  static const bool kWholeTiles = {};\n}};\n"
             // For unaligned pointers.
             "struct ElementSpec : Spec {{\n"
             "  static const int kUnroll = 1, kStages = 0, kSlices = 1, kSliceLength = kLength;\n"
             "}};\n",
             problem.length, layout.threads, layout.row_threads, layout.unroll, layout.stages,
             stage_bytes(problem, layout), shared_bytes(problem, layout).pipeline, layout.slices,
             problem.length / layout.slices, whole_tiles);
}

std::string sums_text(const RowProblem& problem, const RowLayout& layout) {
  const bool is_held = layout.chunks > 0;
  return flag("kScaleSums", !problem.output1.empty()) +
         flag("kBiasSums", !problem.output2.empty()) +
         fmt::format(
             "struct SumSpec {{\n"
             "  static const int kVector = {}, kThreads = {}, kChunks = {}, kSlices = {};\n"
             "  static const int kLength = {};\n}};\n",
             is_held ? layout.vector : 1, is_held ? layout.row_threads : problem.length,
             is_held ? layout.chunks : 1, layout.slices, problem.length);
}

// Operand sources and stores of the row kernel.
std::string operands_text(const RowProblem& problem, const RowLayout& layout, const Graph& graph,
                          Arguments& arguments) {
  const auto source = [&](const PointwiseProgram& program, const char* name) {
    return print_source(program, graph, name, arguments, problem.materialises_prologue);
  };
  const auto statistic = [&](const PointwiseProgram& program, const char* name) {
    return print_statistic_store(program, graph, name, arguments);
  };
  const auto result = [&](const char* name) {
    return print_program(problem.result, graph, name, arguments);
  };
  const auto epsilon = [&] {
    return print_number(problem.epsilon_program, graph, "epsilon_of", problem.epsilon, arguments);
  };
  switch (problem.kind) {
    case RowKind::norm_forward:
      return source(problem.first, "X") + source(problem.scale, "Scale") +
             source(problem.bias, "Bias") + epsilon() +
             print_row_store(problem.stored, graph, "store_x", arguments) + result("store_y") +
             statistic(problem.output1, "store_mean") +
             statistic(problem.output2, "store_inv_variance") +
             flag("kCentred", problem.is_centred) + flag("kSharedParameters", problem.sets == 1);
    case RowKind::norm_backward:
      return source(problem.first, "X") + source(problem.second, "Dy") +
             source(problem.scale, "Scale") + epsilon() + result("store_dx") +
             print_statistic_load(problem.mean, graph, "load_mean", 0.0, arguments) +
             print_statistic_load(problem.inv_variance, graph, "load_inv_variance", 0.0,
                                  arguments) +
             flag("kCentred", problem.is_centred) +
             flag("kGivenStatistics", !problem.inv_variance.empty()) +
             flag("kGivenMean", !problem.mean.empty()) + sums_text(problem, layout);
    case RowKind::softmax_forward:
      return source(problem.first, "X") + result("store_y") +
             statistic(problem.output1, "store_stats") + flag("kLog", problem.is_log);
    case RowKind::softmax_backward: break;
  }
  return source(problem.first, "Y") + source(problem.second, "Dy") + result("store_dx") +
         flag("kLog", problem.is_log);
}

void add_rows(const RowProblem& problem, Arguments& arguments) {
  add_extents(arguments, problem.space);
  arguments.number("rows", problem.rows);
  arguments.number("rows_per_set", problem.rows / problem.sets);
  arguments.number("zero", 0);
}

LaunchDesign rows_launch(const RowProblem& problem, const RowLayout& layout, const RowGrid& grid,
                         const Graph& graph, int partial) {
  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  add_rows(problem, arguments);
  if (problem.kind == RowKind::norm_backward) {
    if (partial >= 0)
      arguments.scratch("partial", partial);
    else
      arguments.number("partial", 0);
    arguments.number("sums_stride", shared_bytes(problem, layout).sums_stride);
  }
  const std::string operands = operands_text(problem, layout, graph, arguments);
  const std::string head =
      spec_text(problem, layout, grid.whole_tiles, arguments) +
      constant("kThreads", layout.threads) + constant("kBlocks", layout.blocks) +
      constant("kVector", layout.vector) + constant("kChunks", layout.chunks) +
      constant("kAhead", layout.ahead) + flag("kSumsInShared", layout.shared_sums) +
      flag("kParametersInRegisters", layout.parameters_in_registers) +
      flag("kRolledEpilogue", has_rolled_epilogue(problem, layout)) +
      flag("kParametersInShared", has_shared_parameters(problem, layout)) +
      constant("kParameterOffset", shared_bytes(problem, layout).parameters) + operands;
  const std::string name(name_of(problem.kind));
  launch.source = {name, assemble(name + ".cuh", head)};
  launch.function = name;
  launch.unaligned_function = name + "_elements";
  launch.threads = static_cast<unsigned>(layout.threads);
  launch.grid.x = static_cast<unsigned>(grid.pieces);
  if (problem.kind == RowKind::norm_backward) launch.grid.y = static_cast<unsigned>(problem.sets);
  launch.shared_bytes = static_cast<unsigned>(shared_bytes(problem, layout).all);
  launch.unaligned_grid = launch.grid;
  launch.cluster = static_cast<unsigned>(layout.slices);
  launch.grid.x *= launch.cluster;
  return launch;
}

// Second step: reduces the column partials of the CTAs.
LaunchDesign sums_launch(const RowProblem& problem, const RowLayout& layout, const RowGrid& grid,
                         const Graph& graph, const DeviceProps& device, int partial) {
  constexpr int kHopper = 90;
  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  add_rows(problem, arguments);
  arguments.scratch("partial", partial);
  arguments.number("pieces", grid.pieces);
  const std::string stores =
      print_statistic_store(problem.output1, graph, "store_dscale", arguments) +
      print_statistic_store(problem.output2, graph, "store_dbias", arguments);
  const std::string head = spec_text(problem, layout, false, arguments) +
                           constant("kThreads", kSumThreads) + constant("kSums", kSumsPerBlock) +
                           sums_text(problem, layout) + stores;
  launch.source = {"row_column_sums", assemble("row_column_sums.cuh", head)};
  launch.function = "row_column_sums";
  launch.threads = kSumThreads;
  launch.is_dependent_launch = device.compute_capability >= kHopper;
  launch.grid.x =
      static_cast<unsigned>((sums_per_row(problem, layout) + kSumsPerBlock - 1) / kSumsPerBlock);
  launch.grid.y = static_cast<unsigned>(problem.sets);
  return launch;
}

class RowNormEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.row_norm"; }
  std::string_view description() const override {
    return "layer, RMS and adaptive layer norm and softmax, rows persistent on chip";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const RowProblem problem(region);
    if (problem.is_other_operation) return Support::other_operation("{}", problem.refusal);
    if (!problem.refusal.empty()) return Support::no("{}", problem.refusal);
    constexpr std::int64_t kMaxSets = 65535, kMaxRows = 0x7f000000;  // with headroom below 2^31
    if (problem.sets > kMaxSets && problem.kind == RowKind::norm_backward)
      return Support::no("{} parameter sets, at most {} are supported", problem.sets, kMaxSets);
    if (problem.rows > kMaxRows)
      return Support::no("{} rows, at most {} are supported", problem.rows, kMaxRows);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const RowProblem problem(region);
    std::vector<Config> result;
    for (const RowCandidate& candidate : row_candidates(problem, device, region.bytes())) {
      Config config;
      config.knobs = candidate.layout.knobs();
      config.cost = {
          .flops = region.flops(),
          .bytes = region.bytes(),
          .bytes_fraction = region.bytes() / (device.bytes_per_second * candidate.seconds)};
      config.scratch_bytes = partial_bytes(problem, candidate.layout, device);
      config.notes.runtime_compiled = true;
      result.push_back(std::move(config));
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const RowProblem problem(region);
    const RowLayout layout = RowLayout::from(problem, config);
    const RowGrid grid = grid_of(problem, layout, device);
    KernelDesign design;
    int partial = -1;
    if (problem.column_sums() > 0)
      partial = design.scratch.add("sums over rows", partial_bytes(problem, layout, device));
    design.launches.push_back(rows_launch(problem, layout, grid, graph, partial));
    if (problem.column_sums() > 0)
      design.launches.push_back(sums_launch(problem, layout, grid, graph, device, partial));
    return design;
  }

 private:
  static std::int64_t partial_bytes(const RowProblem& problem, const RowLayout& layout,
                                    const DeviceProps& device) {
    if (problem.column_sums() == 0) return 0;
    return grid_of(problem, layout, device).pieces * problem.sets * sums_per_row(problem, layout) *
           problem.column_sums() * problem.register_bytes();
  }
};

}  // namespace

const CudaEngine& row_norm_engine() {
  static const RowNormEngine engine;
  return engine;
}

}  // namespace ashlar::cuda
