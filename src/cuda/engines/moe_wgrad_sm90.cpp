// Weight gradients of a mixture of experts on Hopper: one GEMM per expert, whose K runs over the
// rows of its groups, known on the device only. A first launch splits them into K-blocks; where
// rows are gathered or scattered, a second one resolves the routing.
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

using Gradient = MoeGroupedMatmulBackward;

constexpr std::int64_t kBandOfTiles = 16;  // rows of tiles per band, which stay in L2 together

// token or doutput; K runs over its rows.
struct RoutedOperand {
  MatrixOperand factor;   // computed where TMA cannot load it
  ComputedOperand parts;  // for K-blocks that are not full
  bool uses_tma() const { return !factor.computed; }
};

struct MoeWgradShape : MoeRows {
  std::int64_t gradient_rows = 1, columns = 1;  // of an expert
  bool token_is_a = true;                       // otherwise the gradient's transpose is computed
  RoutedOperand a, b;
  PointwiseProgram epilogue;  // its last axis is the columns
  bool rounds_f32 = false;

  bool routes() const { return mode != MoeMode::none; }
  DType math() const { return a.factor.math; }
  std::int64_t max_blocks() const { return rows / block_k(math()) + groups; }
  std::int64_t tiles(const GemmTile& tile) const {
    return experts * ceil_div(gradient_rows, tile.m) * ceil_div(columns, tile.n);
  }
};

// `in_order`: its rows are in the memory order of the groups.
Support describe_routed(const Region& region, int slot, bool in_order, RoutedOperand& factor) {
  const auto i = static_cast<std::size_t>(slot);
  const View& tensor = region.anchor->inputs[i];
  const PointwiseProgram& program = region.prologues[i];
  if (!has_aligned_views(program)) return Support::no("a slice is not aligned to 16 bytes");
  if (Support s = describe_computed(program, tensor.dtype, factor.factor.math, 2, 1, tensor.dims,
                                    factor.parts);
      !s)
    return s;
  if (!factor.parts.along_rows) return Support::no("rows of an operand are not contiguous");
  return describe_operand(program, tensor.dtype, 2, 1, tensor.dims, factor.factor, in_order);
}

Support describe(const Region& region, MoeWgradShape& shape) {
  const auto* op = region.anchor_as<Gradient>();
  if (op == nullptr)
    return Support::other_operation("not a backward grouped matmul of a mixture of experts");
  const auto& outputs = region.anchor->outputs;
  if (outputs.size() > Gradient::dtoken && outputs[Gradient::dtoken].present())
    return Support::no("the gradient of the tokens is computed, too");
  const View &token = region.anchor->inputs[Gradient::token],
             &doutput = region.anchor->inputs[Gradient::doutput];
  const Dims& gradient = region.epilogue.space;
  static_cast<MoeRows&>(shape) = moe_rows(*op, region, gradient[0], doutput.dims[1]);
  if (element_count(gradient) == 0 || shape.rows == 0 || shape.groups == 0 || shape.tokens == 0 ||
      shape.outputs == 0)
    return Support::no("no elements");
  constexpr std::int64_t kMost = 1 << 30;
  if (std::max({shape.rows, shape.tokens, shape.outputs, gradient[1], gradient[2]}) > kMost)
    return Support::no("an extent exceeds 2^30");
  if (region.epilogue.has_random()) return Support::no("the epilogue generates random numbers");
  if (region.epilogue.stores.empty()) return Support::no("only reductions are stored");
  if (!has_aligned_views(region.epilogue)) return Support::no("a slice is not aligned to 16 bytes");
  // The columns of the result must be contiguous: where its rows are, the transpose is computed.
  const View& result = region.epilogue.stores.at(0).view;
  shape.token_is_a = is_contiguous(result, 2) || !is_contiguous(result, 1);
  RoutedOperand &of_token = shape.token_is_a ? shape.a : shape.b,
                &of_doutput = shape.token_is_a ? shape.b : shape.a;
  if (!choose_math(token.dtype, doutput.dtype, region.anchor->compute, of_token.factor.math,
                   of_doutput.factor.math))
    return Support::no("tensor cores do not multiply {} by {} with {} accumulators",
                       to_string(token.dtype), to_string(doutput.dtype),
                       to_string(region.anchor->compute));
  // wgmma needs fp8 K-major, which the rows here are not: bf16 represents fp8 and may be M/N-major.
  if (promotes(of_token.factor.math)) of_token.factor.math = of_doutput.factor.math = bf16;
  shape.rounds_f32 = of_token.factor.math == f32 && (token.dtype == f32 || doutput.dtype == f32);
  if (Support s = describe_routed(region, Gradient::token, !shape.gathers(), of_token); !s)
    return s;
  if (Support s = describe_routed(region, Gradient::doutput, !shape.scatters(), of_doutput); !s)
    return s;
  const int m = shape.token_is_a ? 1 : 2, n = 3 - m;
  shape.gradient_rows = gradient[m];
  shape.columns = gradient[n];
  shape.epilogue = region.epilogue;
  move_axis_last(shape.epilogue, n);
  Dims full = shape.epilogue.space, columns_alone = full;
  for (int axis = 0; axis + 1 < full.rank(); ++axis) columns_alone[axis] = 1;
  if (shape.columns > 1) merge_axes({&shape.epilogue}, {&full, &columns_alone});
  return Support::yes();
}

std::vector<GemmTile> tiles_for(const MoeWgradShape& shape) {
  const DType operands = shape.math();
  std::vector<GemmTile> result;
  for (const GemmTile& tile : gemm_tiles(operands, shape.gradient_rows, shape.columns)) {
    constexpr int kMaxSums = 128;  // besides the registers of producers that compute
    if (tile.cluster > 1 || tile.row_blocks() * tile.n / 2 > kMaxSums) continue;
    if (shape.b.factor.transpose && tile.n % block_k(operands) != 0) continue;
    result.push_back(tile);
  }
  // Fewer columns than a box has.
  if (result.empty()) result.push_back({.m = 64, .n = 64, .ping_pong = true});
  return result;
}

// Share of the tensor-core rate that remains where producers compute the last K-block of every
// group.
double k_efficiency(const MoeWgradShape& shape, const GemmTile& tile, double blocks) {
  MatrixOperand a = shape.a.factor, b = shape.b.factor;
  const double of_whole = producer_efficiency(a, b, tile);
  a.computed = shape.a.parts;
  b.computed = shape.b.parts;
  const double of_parts = producer_efficiency(a, b, tile);
  const double parts = std::min(1.0, static_cast<double>(shape.groups) / blocks);
  return 1 / ((1 - parts) / of_whole + parts / of_parts);
}

class MoeWgradSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.moe_wgrad_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "weight gradients of a mixture of experts with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    MoeWgradShape shape;
    if (Support support = describe(region, shape); !support) return support;
    return requires_hopper(device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    MoeWgradShape shape;
    describe(region, shape);
    const DType operands = shape.math();
    // Half a K-block of every group, on average, is padding.
    const double blocks =
        static_cast<double>(shape.rows) / block_k(operands) + static_cast<double>(shape.groups) / 2;
    const double depth = blocks * block_k(operands) / static_cast<double>(shape.experts);
    std::vector<Config> result;
    for (const GemmTile& tile : tiles_for(shape)) {
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      const auto area = static_cast<double>(tile.m * tile.n);
      config.cost =
          tile_cost({.engine = id(),
                     .operands = operands,
                     .tile_m = tile.m,
                     .tile_n = tile.n,
                     .tiles = static_cast<double>(shape.tiles(tile)),
                     .flops = 2 * area * depth,
                     .load_bytes = depth * bit_width(operands) / 8 * (tile.m + tile.n),
                     .store_bytes = 2 * area,
                     .memory_bytes = bytes_of(region.prologues[Gradient::token]) +
                                     bytes_of(region.prologues[Gradient::doutput], region.epilogue),
                     .persistent = tile.ping_pong,
                     .launches = shape.routes() ? 3 : 2,
                     .efficiency = k_efficiency(shape, tile, blocks)},
                    device, region.precision());
      config.scratch_bytes =
          begin_bytes(shape) + start_bytes(shape) + block_bytes(shape) + route_bytes(shape);
      config.notes.runtime_compiled = true;
      config.notes.tf32 = shape.rounds_f32;
      config.notes.truncating_accumulation = true;
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    MoeWgradShape shape;
    describe(region, shape);
    KernelDesign result;
    result.unaligned = unaligned_fallback(graph, region, config, device);
    Design all{.shape = shape, .region = region, .graph = graph, .device = device};
    all.begins = result.scratch.add("group begins", begin_bytes(shape));
    all.starts = result.scratch.add("expert K-blocks", start_bytes(shape));
    all.blocks = result.scratch.add("K-blocks", block_bytes(shape));
    if (shape.routes()) all.routes = result.scratch.add("row routes", route_bytes(shape));
    result.launches.push_back(all.make_k_blocks());
    if (shape.routes()) result.launches.push_back(all.route_rows());
    result.launches.push_back(all.product(tile_of(config)));
    return result;
  }

 private:
  static std::int64_t begin_bytes(const MoeWgradShape& shape) { return 4 * (shape.groups + 1); }
  static std::int64_t start_bytes(const MoeWgradShape& shape) { return 4 * (shape.experts + 1); }
  static std::int64_t block_bytes(const MoeWgradShape& shape) { return 16 * shape.max_blocks(); }
  static std::int64_t route_bytes(const MoeWgradShape& shape) {
    return shape.routes() ? 8 * shape.rows : 0;
  }

  struct Design {
    const MoeWgradShape& shape;
    const Region& region;
    const Graph& graph;
    const DeviceProps& device;
    int begins = -1, starts = -1, blocks = -1, routes = -1;  // scratch

    void add_blocks(Arguments& arguments) const {
      arguments.scratch("expert_blocks", starts);
      arguments.scratch("row_blocks", blocks);
    }
    std::string types(const std::vector<const PointwiseProgram*>& programs) const {
      return register_types(region.precision(), programs);
    }

    LaunchDesign make_k_blocks() const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      arguments.scratch("group_begins", begins);
      add_blocks(arguments);
      const std::string routing = print_routing(shape, graph, arguments);
      const std::string head = types({&shape.epilogue}) +
                               constant("kBlockK", block_k(shape.math())) +
                               arguments.struct_text() + routing;
      constexpr std::array<std::string_view, 3> kFiles = {
          "generic/moe_routing.cuh", "moe/scan_groups.cuh", "moe/k_blocks.cuh"};
      launch.source = {"moe_k_blocks", assemble(kFiles, head)};
      launch.function = "k_blocks";
      launch.threads = 512;
      return launch;
    }

    LaunchDesign route_rows() const {
      constexpr std::int64_t kWarps = 4;
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      add_blocks(arguments);
      arguments.scratch("routes", routes);
      const std::string routing = print_routing(shape, graph, arguments);
      const std::string head = types({&shape.epilogue}) + arguments.struct_text() + routing;
      constexpr std::array<std::string_view, 2> kFiles = {"generic/moe_routing.cuh",
                                                          "moe/route_rows.cuh"};
      launch.source = {"moe_route_rows", assemble(kFiles, head)};
      launch.function = "route_rows";
      launch.threads = 32 * kWarps;
      launch.grid.x = static_cast<unsigned>(
          std::min<std::int64_t>(ceil_div(shape.max_blocks(), kWarps), 8 * device.compute_units));
      return launch;
    }

    LaunchDesign product(const GemmTile& tile) const {
      LaunchDesign launch;
      Arguments& arguments = launch.arguments;
      const auto ask = [&](const std::string& name, const RoutedOperand& factor, std::int64_t lines,
                           int rows) {
        if (factor.uses_tma())
          arguments.tensor_map(name, factor.factor.view,
                               map_of(factor.factor, lines, shape.rows, 1, rows));
      };
      ask("map_a", shape.a, shape.gradient_rows, tile.m);
      ask("map_b", shape.b, shape.columns, tile.n);
      add_blocks(arguments);
      if (shape.routes())
        arguments.scratch("routes", routes);
      else
        arguments.number("routes", 0);
      arguments.number("batched_a", 0);
      arguments.number("batched_b", 0);
      arguments.number("rows", shape.gradient_rows);
      arguments.number("columns", shape.columns);
      arguments.number("depth", shape.rows);
      arguments.number("tiles_m", ceil_div(shape.gradient_rows, tile.m));
      arguments.number("tiles_n", ceil_div(shape.columns, tile.n));
      arguments.number("cluster_tiles", shape.tiles(tile));
      arguments.number("k_blocks", 0);  // per expert
      arguments.number("group_m", kBandOfTiles);
      arguments.real("padding_value", 0);
      add_extents(arguments, shape.epilogue.space);
      const auto factor = [&](const RoutedOperand& of, char which) {
        return operand_constants(&of.parts, of.factor.math, which, of.uses_tma()) +
               print_program(of.parts.program, graph, fmt::format("{}_at", which), arguments);
      };
      const std::string printed =
          print_program_with_prefetch(shape.epilogue, graph, "epilogue", arguments) +
          print_residual_prefetch(shape.epilogue, tile.n, graph, arguments) + factor(shape.a, 'a') +
          factor(shape.b, 'b') + constant("kTokenIsA", shape.token_is_a) +
          constant("kRoutes", shape.routes()) + constant("kHasLengths", 0) +
          constant("kHasKLengths", 0) +
          print_lengths({}, "rows_of", "args.rows", graph, arguments) +
          print_lengths({}, "columns_of", "args.columns", graph, arguments);
      GemmKernel kernel{
          .name = "moe_wgrad_sm90",
          .precision = region.precision(),
          .programs = {&shape.epilogue, &shape.a.parts.program, &shape.b.parts.program},
          .tile = tile,
          .stages = stage_count(tile, device),
          .printed = printed,
          .files = {"lib/epilogue_rows.cuh", "moe/expert_k_blocks.cuh", "sm90/tile_scheduler.cuh",
                    "sm90/load_matrix.cuh", "sm90/epilogue_matrix.cuh", "sm90/prologue_pieces.cuh",
                    "moe/routed_operands.cuh", "sm90/prologue_tiles.cuh", "moe/fill_operands.cuh"}};
      kernel.form = {.a = shape.math(),
                     .b = shape.b.factor.math,
                     .transpose_a = shape.a.factor.transpose,
                     .transpose_b = shape.b.factor.transpose,
                     .vector = vector_length(shape.epilogue, max_vector(shape.columns)),
                     .rank = shape.epilogue.space.rank(),
                     .computes_a = !shape.a.uses_tma(),
                     .computes_b = !shape.b.uses_tma(),
                     .computes_some = true};
      kernel.set(launch);
      launch.grid.x =
          static_cast<unsigned>(std::min<std::int64_t>(shape.tiles(tile), device.compute_units));
      return launch;
    }
  };
};

}  // namespace

const CudaEngine& moe_wgrad_sm90_engine() {
  static const MoeWgradSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
