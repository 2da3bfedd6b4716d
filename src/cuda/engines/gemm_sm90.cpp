// GEMM on Hopper: warp-specialised persistent kernel with TMA loads and wgmma.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_kernel.hpp"
#include "cuda/engines/sm90/producer_cost.hpp"
#include "cuda/engines/sm90/residual_prefetch.hpp"
#include "cuda/engines/sm90/stream_k_tiles.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kBandRows = 16;  // rows of tiles per band, which stay in L2 together

std::int64_t cluster_tiles(const MatrixShape& shape, const GemmTile& tile) {
  return shape.batches * ceil_div(shape.rows, tile.m * tile.cluster) *
         ceil_div(shape.columns, tile.n);
}

GemmTails tails_of(const Region& region, const MatrixShape& shape, const GemmTile& tile,
                   std::int64_t blocks) {
  const std::int64_t above = ceil_div(shape.rows, tile.m * tile.cluster) * tile.cluster;
  return {region,
          shape.axes,
          {.rows = above * tile.tile_warpgroups(),
           .columns = ceil_div(shape.columns, tile.n),
           .warps = blocks * tile.consumers * 4}};
}

std::int64_t k_blocks(const MatrixShape& shape) {
  return ceil_div(shape.depth, block_k(shape.a.math));
}

std::vector<GemmTile> tiles_for(const MatrixShape& shape) {
  const DType operands = shape.a.math;
  std::vector<GemmTile> result;
  for (const GemmTile& tile : gemm_tiles(operands, shape.rows, shape.columns)) {
    // Contiguous rows are loaded in boxes of 128 bytes.
    if (shape.b.transpose && tile.n / tile.cluster % block_k(operands) != 0) continue;
    // Computed operands are not multicast, and producers that compute need registers.
    const int sums = tile.row_blocks() * tile.n / 2 * (promotes(operands) ? 2 : 1);
    if (shape.computes() && (tile.cluster > 1 || sums > 128)) continue;
    result.push_back(tile);
    // With four warpgroups a thread starts with 128 registers: for accumulators and the mainloop.
    const bool converts = shape.a.converted() || shape.b.converted();
    if (!shape.computes() || (tile.m * tile.n < 128 * 128 && !converts) || sums > 96) continue;
    result.push_back(tile);
    result.back().producers = 2;
  }
  // Fewer columns than a box has.
  if (result.empty()) result.push_back({.m = 64, .n = 64, .ping_pong = true});
  return result;
}

std::string lengths_text(const MatrixShape& shape, const Graph& graph, Arguments& arguments) {
  const auto print = [&](const View& lengths, const char* name, const char* extent) {
    return print_lengths(lengths, name, extent, graph, arguments);
  };
  return constant("kHasLengths", shape.row_lengths.present() || shape.column_lengths.present()) +
         constant("kHasKLengths", shape.k_lengths.present()) +
         print(shape.row_lengths, "rows_of", "args.rows") +
         print(shape.column_lengths, "columns_of", "args.columns") +
         print(shape.k_lengths, "depth_of", "args.depth");
}

class GemmSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.gemm_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "warp-specialised GEMM with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    MatrixShape shape;
    if (Support support = describe(region, shape); !support) return support;
    if (Support support = requires_hopper(device); !support) return support;
    return is_worth_dequantizing(region, *this, device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    const DType operands = shape.a.math;
    const double bytes = bit_width(operands) / 8.0;
    // With few rows tiles are mostly padding and memory bandwidth is not reached, even less where
    // weights are dequantised (26 to 28 us instead of 18, 84 to 170 instead of 50 to 90).
    const bool converts = shape.a.converted() || shape.b.converted();
    const bool has_few_rows = std::min(shape.rows, shape.columns) <= 32;
    const double few_rows = !has_few_rows ? 1 : converts ? 6 : 1.7;
    const std::int64_t split_k_blocks =
        has_few_rows || converts || !region.reductions.empty() ? 0 : k_blocks(shape);
    const auto config_of = [&](const GemmTile& tile) {
      Config config;
      config.knobs = knobs_of(tile);
      const TileWaves waves(tile, cluster_tiles(shape, tile), device);
      const GemmTails tails = tails_of(region, shape, tile, waves.grid);
      const auto area = static_cast<double>(tile.m * tile.n),
                 depth = static_cast<double>(shape.depth);
      const double operands_bytes = bytes * depth * static_cast<double>(shape.batches) *
                                    static_cast<double>(shape.rows + shape.columns);
      const double result_bytes =
          converts ? bytes_of({}, region.epilogue) : region.bytes() - operands_bytes;
      config.cost = tile_cost(
          {.engine = id(),
           .operands = operands,
           .tile_m = tile.m,
           .tile_n = tile.n,
           .variant = tile.variant(),
           .tiles = static_cast<double>(waves.whole * tile.cluster),
           .flops = 2 * area * depth,
           .load_bytes =
               depth * (shape.a.loaded_bytes() * tile.m +
                        shape.b.loaded_bytes() * static_cast<double>(tile.n) / tile.cluster),
           .store_bytes = std::max(result_bytes, 0.0) * area /
                          static_cast<double>(shape.batches * shape.rows * shape.columns),
           .memory_bytes = region.bytes() * few_rows + static_cast<double>(tails.scratch_bytes()),
           .cluster = tile.cluster,
           .split_tiles = static_cast<double>(waves.split * tile.cluster),
           .splits = tile.splits,
           .streams = tile.streams,
           .persistent = tile.ping_pong,
           .launches = (tails.empty() ? 1 : 2) + (tile.streams ? 1 : 0),
           .efficiency = producer_efficiency(shape.a, shape.b, tile)},
          device, region.precision());
      config.scratch_bytes =
          tails.scratch_bytes() + StreamKTiles{tile, waves, k_blocks(shape)}.scratch_bytes();
      note_precision(operands, shape.rounds_f32, config);
      return config;
    };
    const auto stored = [&](const MatrixOperand& factor, std::int64_t lines) {
      return (factor.batch == 0 ? 1 : shape.batches) * lines * shape.depth * bit_width(operands) /
             8;
    };
    const OperandBytes factors{.row_bytes = stored(shape.a, shape.rows),
                               .column_bytes = stored(shape.b, shape.columns),
                               .columns = shape.columns,
                               .producer_bound = shape.computes()};
    std::vector<Config> result;
    for (const GemmTile& tile : tiles_for(shape))
      if (region.reductions.empty() ||
          has_room_for_tails(tile, region.reductions.size(), shape.computes()))
        add_configs(tile, cluster_tiles(shape, tile), split_k_blocks, factors, config_of, device,
                    region.precision(), result);
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    GemmTile tile = tile_of(config);
    const int steps = raw_steps(shape.a, shape.b, tile, tile.raw_bytes);
    const DType operands = shape.a.math;
    const TileWaves waves(tile, cluster_tiles(shape, tile), device);

    KernelDesign result;
    GemmTails tails = tails_of(region, shape, tile, waves.grid);
    tails.scratch_layout(result.scratch);
    result.unaligned = tails.empty() ? unaligned_fallback(graph, region, config, device)
                                     : tails.unaligned(graph, region, device);
    LaunchDesign& launch = result.launches.emplace_back();
    Arguments& arguments = launch.arguments;
    if (!shape.a.computed)
      arguments.tensor_map("map_a", shape.a.view,
                           map_of(shape.a, shape.rows, shape.depth, shape.batches, tile.m));
    if (!shape.b.computed)
      arguments.tensor_map(
          "map_b", shape.b.view,
          map_of(shape.b, shape.columns, shape.depth, shape.batches, tile.n / tile.cluster));
    arguments.number("batched_a", shape.a.batch != 0);
    arguments.number("batched_b", shape.b.batch != 0);
    arguments.number("rows", shape.rows);
    arguments.number("columns", shape.columns);
    arguments.number("depth", shape.depth);
    arguments.number("tiles_m", ceil_div(shape.rows, tile.m * tile.cluster));
    arguments.number("tiles_n", ceil_div(shape.columns, tile.n));
    arguments.number("cluster_tiles", cluster_tiles(shape, tile));
    arguments.number("k_blocks", k_blocks(shape));
    arguments.number("whole_tiles", waves.whole);
    arguments.number("group_m", kBandRows / tile.cluster);
    const StreamKTiles stream_k{tile, waves, k_blocks(shape)};
    stream_k.add_arguments(result.scratch, arguments);
    arguments.real("padding_value", shape.padding_value);
    add_extents(arguments, shape.epilogue.space);
    tails.add_arguments(arguments);
    const auto factor = [&](const MatrixOperand& from, char which) {
      return print_operand(from.computed ? &*from.computed : nullptr, from.math, which, graph,
                           arguments);
    };
    const std::string printed =
        print_program_with_prefetch(shape.epilogue, graph, "epilogue", arguments) +
        print_residual_prefetch(shape.epilogue, tile.n, graph, arguments) + factor(shape.a, 'a') +
        factor(shape.b, 'b') + lengths_text(shape, graph, arguments);

    GemmKernel kernel{.name = "gemm_sm90",
                      .precision = region.precision(),
                      .programs = {&shape.epilogue},
                      .tile = tile,
                      .stages = stage_count(tile, device),
                      .constants = constant("kRawSteps", steps),
                      .printed = printed,
                      .tails = &tails,
                      .tail_place = "sm90/tails_matrix.cuh"};
    kernel.form = {.a = operands,
                   .b = shape.b.math,
                   .transpose_a = shape.a.transpose,
                   .transpose_b = shape.b.transpose,
                   .vector = vector_length(shape.epilogue, max_vector(shape.columns)),
                   .rank = shape.epilogue.space.rank(),
                   .computes_a = shape.a.computed.has_value(),
                   .computes_b = shape.b.computed.has_value(),
                   .has_whole_tiles = waves.whole > 0,
                   .has_tails = !tails.empty()};
    for (const MatrixOperand* one : {&shape.a, &shape.b})
      if (one->computed) kernel.programs.push_back(&one->computed->program);
    kernel.files = {"lib/epilogue_rows.cuh",
                    tile.streams ? "sm90/stream_k.cuh" : "sm90/split_k.cuh",
                    "sm90/tile_scheduler.cuh", "sm90/load_matrix.cuh", "sm90/epilogue_matrix.cuh"};
    if (shape.computes())
      kernel.files.insert(kernel.files.end(),
                          {"sm90/prologue_pieces.cuh", "sm90/dequantize_rows.cuh",
                           "sm90/prologue_tiles.cuh", "sm90/prologue_operands.cuh"});
    kernel.set(launch);
    launch.cluster = waves.cluster;
    launch.grid.x = waves.grid;
    stream_k.add_reset(result.launches);
    if (!tails.empty()) result.launches.push_back(tails.sum(graph));
    return result;
  }
};

}  // namespace

const CudaEngine& gemm_sm90_engine() {
  static const GemmSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
