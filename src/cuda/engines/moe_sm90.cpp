// Grouped GEMM of a mixture of experts on Hopper: one GEMM per group of rows, whose extents are
// known on the device only. A first launch splits the groups into tiles of rows. Where more rows
// are scattered than there are output rows, a last launch adds them.
#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_kernel.hpp"
#include "cuda/engines/sm90/moe_rows.hpp"
#include "cuda/engines/sm90/producer_cost.hpp"
#include "cuda/engines/sm90/residual_prefetch.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

using Op = MoeGroupedMatmul;

struct MoeShape : MoeRows {
  std::int64_t columns = 1, depth = 1;
  MatrixOperand token, weight;
  ComputedOperand any_token, any_weight;  // for single elements
  PointwiseProgram epilogue;              // its last axis is the columns
  bool rounds_f32 = false;

  bool computes() const { return token.computed || weight.computed; }
  // Scatter with several rows per output row: the GEMM stores its rows in memory order and a later
  // launch adds them. Otherwise such rows are few.
  bool adds() const { return scatters() && rows > outputs && token.math != DType::i8; }
  // Listed rows per output row: enough for most output rows.
  std::int64_t listed_rows() const {
    return adds() ? std::clamp<std::int64_t>(4 * ceil_div(rows, outputs), 8, 256) : 0;
  }
  // Columns of accumulators per thread and access, at most 16 bytes.
  int sum_vector() const { return std::min(max_vector(columns), 4); }
  std::int64_t max_row_tiles(const GemmTile& tile) const { return rows / tile.m + groups + 1; }
};

Support describe(const Region& region, MoeShape& shape) {
  const auto* op = region.anchor_as<Op>();
  if (op == nullptr)
    return Support::other_operation("not a grouped matmul of a mixture of experts");
  const auto dims = [&](int slot) {
    return region.anchor->inputs[static_cast<std::size_t>(slot)].dims;
  };
  const auto dtype = [&](int slot) {
    return region.anchor->inputs[static_cast<std::size_t>(slot)].dtype;
  };
  static_cast<MoeRows&>(shape) =
      moe_rows(*op, region, dims(Op::weight)[0], region.epilogue.space[1]);
  shape.depth = dims(Op::token)[2];
  shape.columns = dims(Op::weight)[2];
  shape.epilogue = region.epilogue;
  if (element_count(region.epilogue.space) == 0 || shape.depth == 0 || shape.rows == 0 ||
      shape.groups == 0 || shape.tokens == 0)
    return Support::no("no elements");
  constexpr std::int64_t kMost = 1 << 30;
  if (std::max({shape.rows, shape.outputs, shape.columns, shape.depth}) > kMost)
    return Support::no("an extent exceeds 2^30");
  if (region.epilogue.has_random()) return Support::no("the epilogue generates random numbers");
  if (!choose_math(dtype(Op::token), dtype(Op::weight), region.anchor->compute, shape.token.math,
                   shape.weight.math))
    return Support::no("tensor cores do not multiply {} by {} with {} accumulators",
                       to_string(dtype(Op::token)), to_string(dtype(Op::weight)),
                       to_string(region.anchor->compute));
  shape.rounds_f32 = dtype(Op::token) == f32 || dtype(Op::weight) == f32;

  const PointwiseProgram &of_token = region.prologues[Op::token],
                         &of_weight = region.prologues[Op::weight];
  const Dims token_dims = dims(Op::token), weight_dims = dims(Op::weight);
  if (Support s = describe_computed(of_token, dtype(Op::token), shape.token.math, 1, 2, token_dims,
                                    shape.any_token, true);
      !s)
    return s;
  if (Support s = describe_computed(of_weight, dtype(Op::weight), shape.weight.math, 2, 1,
                                    weight_dims, shape.any_weight, true);
      !s)
    return s;
  if (!shape.gathers())
    if (Support s = describe_operand(of_token, dtype(Op::token), 1, 2, token_dims, shape.token); !s)
      return s;
  if (shape.gathers() || shape.token.computed) {
    shape.token.computed = shape.any_token;
    shape.token.transpose = false;
  }
  if (Support s =
          describe_operand(of_weight, dtype(Op::weight), 2, 1, weight_dims, shape.weight, true,
                           /*may_convert=*/true);
      !s)
    return s;
  Dims full = shape.epilogue.space, columns_alone = full;
  for (int axis = 0; axis + 1 < full.rank(); ++axis) columns_alone[axis] = 1;
  if (shape.columns > 1) merge_axes({&shape.epilogue}, {&full, &columns_alone});
  return Support::yes();
}

std::vector<GemmTile> tiles_for(const MoeShape& shape, std::int64_t rows_of_group) {
  const DType operands = shape.token.math;
  std::vector<GemmTile> result;
  for (const GemmTile& tile : gemm_tiles(operands, rows_of_group, shape.columns)) {
    const int sums = tile.row_blocks() * tile.n / 2 * (promotes(operands) ? 2 : 1);
    const int most = tile.ping_pong ? 96 : 128;  // besides the registers of producers that compute
    if (tile.cluster > 1 || (shape.computes() && sums > most)) continue;
    if (shape.weight.transpose && tile.n % block_k(operands) != 0) continue;
    result.push_back(tile);
    // With four warpgroups a thread starts with 128 registers: for accumulators and the mainloop.
    if (!shape.weight.converted() || sums > 96) continue;
    result.push_back(tile);
    result.back().producers = 2;
  }
  // Fewer columns than a box has.
  if (result.empty()) result.push_back({.m = 64, .n = 64, .ping_pong = true});
  return result;
}

class MoeSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.moe_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "grouped GEMM of a mixture of experts with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    MoeShape shape;
    if (Support support = describe(region, shape); !support) return support;
    if (Support support = requires_hopper(device); !support) return support;
    return is_worth_dequantizing(region, *this, device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    MoeShape shape;
    describe(region, shape);
    const DType operands = shape.token.math;
    const std::int64_t of_group = std::max<std::int64_t>(shape.rows / shape.groups, 1);
    std::vector<Config> result;
    for (const GemmTile& tile : tiles_for(shape, of_group)) {
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      const auto area = static_cast<double>(tile.m * tile.n),
                 depth = static_cast<double>(shape.depth);
      config.cost = tile_cost(
          {.engine = id(),
           .operands = operands,
           .tile_m = tile.m,
           .tile_n = tile.n,
           .tiles = static_cast<double>(shape.groups * ceil_div(of_group, tile.m) *
                                        ceil_div(shape.columns, tile.n)),
           .flops = 2 * area * depth,
           .load_bytes =
               depth * (shape.token.loaded_bytes() * tile.m + shape.weight.loaded_bytes() * tile.n),
           .store_bytes = (shape.adds() ? sizeof(float) : 2) * area,
           .memory_bytes = region.bytes() + 2 * static_cast<double>(sum_bytes(shape)),
           .persistent = tile.ping_pong,
           .launches = shape.scatters() ? 4 : 2,
           .efficiency = producer_efficiency(shape.token, shape.weight, tile)},
          device, region.precision());
      config.scratch_bytes =
          table_bytes(shape, tile) + count_bytes(shape) + list_bytes(shape) + sum_bytes(shape);
      note_precision(operands, shape.rounds_f32, config);
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    MoeShape shape;
    describe(region, shape);
    GemmTile tile = tile_of(config);
    const int steps = raw_steps(shape.token, shape.weight, tile, tile.raw_bytes);
    KernelDesign result;
    result.unaligned = unaligned_fallback(graph, region, config, device);
    const int table = result.scratch.add("row tiles", table_bytes(shape, tile));
    const int counts = shape.scatters() ? result.scratch.add("row counts", count_bytes(shape)) : -1;
    const int lists = shape.adds() ? result.scratch.add("row lists", list_bytes(shape)) : -1;
    const int sums = shape.adds() ? result.scratch.add("GEMM rows", sum_bytes(shape)) : -1;
    const Design all{shape, region, graph, device, tile, steps, table, counts, lists, sums};
    result.launches.push_back(all.partition_groups());
    if (shape.scatters()) result.launches.push_back(all.count_rows());
    result.launches.push_back(all.product());
    if (shape.adds())
      result.launches.push_back(all.add_rows());
    else if (shape.scatters())
      result.launches.push_back(all.other_rows());
    return result;
  }

 private:
  static std::int64_t table_bytes(const MoeShape& shape, const GemmTile& tile) {
    return 16 * (shape.max_row_tiles(tile) + 1);
  }
  static std::int64_t count_bytes(const MoeShape& shape) {
    return shape.scatters() ? 4 * shape.outputs : 0;
  }
  static std::int64_t list_bytes(const MoeShape& shape) {
    return 4 * shape.outputs * shape.listed_rows();
  }
  static std::int64_t sum_bytes(const MoeShape& shape) {
    return shape.adds() ? 4 * shape.rows * shape.columns : 0;
  }

  struct Design {
    const MoeShape& shape;
    const Region& region;
    const Graph& graph;
    const DeviceProps& device;
    const GemmTile& tile;
    int raw_steps;                   // K-blocks of packed weights in flight
    int table, counts, lists, sums;  // scratch

    void add_scratch(Arguments& arguments) const {
      const auto add = [&](const char* name, int reservation) {
        if (reservation >= 0)
          arguments.scratch(name, reservation);
        else
          arguments.number(name, 0);
      };
      arguments.scratch("row_tiles", table);
      add("row_counts", counts);
      if (!shape.adds()) return;
      add("row_lists", lists);
      add("row_sums", sums);
    }
    std::string types(const std::vector<const PointwiseProgram*>& programs) const {
      return register_types(region.precision(), programs);
    }

    LaunchDesign partition_groups() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      add_scratch(arguments);
      const std::string routing = print_routing(shape, graph, arguments);
      const std::string head =
          types({&shape.epilogue}) + constant("kTileM", tile.m) + arguments.struct_text() + routing;
      constexpr std::array<std::string_view, 3> kFiles = {
          "generic/moe_routing.cuh", "moe/scan_groups.cuh", "moe/group_tiles.cuh"};
      launch.source = {"moe_group_tiles", assemble(kFiles, head)};
      launch.function = "group_tiles";
      launch.threads = 512;
      return launch;
    }

    LaunchDesign count_rows() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      add_scratch(arguments);
      const std::string routing = print_routing(shape, graph, arguments);
      if (!shape.adds()) arguments.number("row_lists", 0);
      const std::string head = types({&shape.epilogue}) + constant("kListed", shape.listed_rows()) +
                               arguments.struct_text() + routing;
      constexpr std::array<std::string_view, 2> kFiles = {"generic/moe_routing.cuh",
                                                          "moe/count_rows.cuh"};
      launch.source = {"moe_count_rows", assemble(kFiles, head)};
      launch.function = "count_rows";
      launch.grid.x = static_cast<unsigned>(
          std::min<std::int64_t>(ceil_div(shape.rows, 256), device.compute_units));
      return launch;
    }

    LaunchDesign product() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      if (!shape.token.computed)
        arguments.tensor_map("map_a", shape.token.view,
                             map_of(shape.token, shape.tokens, shape.depth, 1, tile.m));
      if (!shape.weight.computed)
        arguments.tensor_map(
            "map_b", shape.weight.view,
            map_of(shape.weight, shape.columns, shape.depth, shape.experts, tile.n));
      add_scratch(arguments);
      arguments.number("batched_a", 0);
      arguments.number("batched_b", shape.weight.batch != 0);
      arguments.number("rows", shape.rows);
      arguments.number("columns", shape.columns);
      arguments.number("depth", shape.depth);
      arguments.number("tiles_n", ceil_div(shape.columns, tile.n));
      arguments.number("k_blocks", ceil_div(shape.depth, block_k(shape.token.math)));
      // Rows that are added later are stored in memory order.
      MoeRows routed = shape;
      if (shape.adds()) routed.mode = MoeMode::none;
      const Dims space = shape.adds() ? Dims{shape.rows, shape.columns} : shape.epilogue.space;
      add_extents(arguments, space);
      std::string printed = (shape.adds() ? print_empty_prefetch(space.rank())
                                          : print_program_with_prefetch(shape.epilogue, graph,
                                                                        "epilogue", arguments)) +
                            print_routing(routed, graph, arguments);
      const auto computed = [](const MatrixOperand& factor) {
        return factor.computed ? &*factor.computed : nullptr;
      };
      printed += operand_constants(computed(shape.token), shape.token.math, 'a');
      printed += print_program(shape.any_token.program, graph, "token_at", arguments);
      // no residual prefetch: rows are scattered
      printed += print_residual_prefetch({}, tile.n, graph, arguments);
      printed += constant("kHasKLengths", 0) + constant("kRawSteps", raw_steps) +
                 print_lengths({}, "depth_of", "args.depth", graph, arguments);
      printed += print_operand(computed(shape.weight), shape.weight.math, 'b', graph, arguments);
      GemmKernel kernel{
          .name = "moe_sm90",
          .precision = region.precision(),
          .programs = {&shape.epilogue, &shape.any_token.program, &shape.any_weight.program},
          .tile = tile,
          .stages = stage_count(tile, device),
          .printed = printed,
          .files = {"lib/epilogue_rows.cuh", "generic/moe_routing.cuh",
                    "sm90/tile_scheduler_moe.cuh", "sm90/load_matrix.cuh", "moe/group_rows.cuh"}};
      kernel.form = {.a = shape.token.math,
                     .b = shape.weight.math,
                     .transpose_a = shape.token.transpose,
                     .transpose_b = shape.weight.transpose,
                     .vector = shape.adds()
                                   ? shape.sum_vector()
                                   : vector_length(shape.epilogue, max_vector(shape.columns)),
                     .rank = space.rank(),
                     .computes_a = shape.token.computed.has_value(),
                     .computes_b = shape.weight.computed.has_value()};
      if (shape.adds()) kernel.files.insert(kernel.files.begin(), "moe/store_accumulators.cuh");
      if (shape.computes())
        kernel.files.insert(kernel.files.end(),
                            {"sm90/prologue_pieces.cuh", "sm90/dequantize_rows.cuh",
                             "sm90/prologue_tiles.cuh", "sm90/prologue_operands.cuh"});
      kernel.set(launch);
      launch.grid.x = static_cast<unsigned>(std::min<std::int64_t>(
          shape.max_row_tiles(tile) * ceil_div(shape.columns, tile.n), device.compute_units));
      return launch;
    }

    LaunchDesign add_rows() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      add_scratch(arguments);
      arguments.number("columns", shape.columns);
      add_extents(arguments, shape.epilogue.space);
      const std::string printed = print_program(shape.epilogue, graph, "epilogue", arguments) +
                                  print_routing(shape, graph, arguments);
      const std::string head =
          types({&shape.epilogue}) + constant("kRank", shape.epilogue.space.rank()) +
          constant("kVector", vector_length(shape.epilogue, shape.sum_vector())) +
          constant("kListed", shape.listed_rows()) + arguments.struct_text() + printed;
      constexpr std::array<std::string_view, 3> kFiles = {
          "generic/moe_routing.cuh", "moe/scan_groups.cuh", "moe/add_rows.cuh"};
      launch.source = {"moe_add_rows", assemble(kFiles, head)};
      launch.function = "add_rows";
      launch.threads = 512;
      launch.grid.x = static_cast<unsigned>(
          std::min<std::int64_t>(shape.outputs, std::int64_t{4} * device.compute_units));
      return launch;
    }

    LaunchDesign other_rows() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      add_scratch(arguments);
      arguments.number("columns", shape.columns);
      arguments.number("depth", shape.depth);
      add_extents(arguments, shape.epilogue.space);
      const std::string printed =
          print_program(shape.epilogue, graph, "epilogue", arguments) +
          print_routing(shape, graph, arguments) +
          print_program(shape.any_token.program, graph, "token_at", arguments) +
          print_program(shape.any_weight.program, graph, "weight_at", arguments);
      const std::string head =
          types({&shape.epilogue, &shape.any_token.program, &shape.any_weight.program}) +
          constant("kRank", shape.epilogue.space.rank()) + arguments.struct_text() + printed;
      constexpr std::array<std::string_view, 2> kFiles = {"generic/moe_routing.cuh",
                                                          "moe/other_rows.cuh"};
      launch.source = {"moe_other_rows", assemble(kFiles, head)};
      launch.function = "other_rows";
      launch.grid.x = static_cast<unsigned>(
          std::min<std::int64_t>(shape.outputs, std::int64_t{8} * device.compute_units));
      return launch;
    }
  };
};

}  // namespace

const CudaEngine& moe_sm90_engine() {
  static const MoeSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
