// Matrix products on Hopper: tiles brought in by the copy engine, multiplied by warpgroups.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/any_address.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/asked_ahead.hpp"
#include "cuda/engines/sm90/computing_cost.hpp"
#include "cuda/engines/sm90/streamed_tiles.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kBandRows = 16;  // of tiles that stay in the L2 cache together

std::int64_t cluster_tiles(const MatrixShape& shape, const ProductTile& tile) {
  return shape.batches * ceil_div(shape.rows, tile.m * tile.cluster) *
         ceil_div(shape.columns, tile.n);
}

ProductTails tails_of(const Region& region, const MatrixShape& shape, const ProductTile& tile,
                      std::int64_t blocks) {
  const std::int64_t above = ceil_div(shape.rows, tile.m * tile.cluster) * tile.cluster;
  return {region,
          shape.axes,
          {.rows = above * tile.sharers(),
           .columns = ceil_div(shape.columns, tile.n),
           .warps = blocks * tile.consumers * 4}};
}

std::int64_t depth_blocks(const MatrixShape& shape) {
  return ceil_div(shape.depth, tile_depth(shape.a.math));
}

std::vector<ProductTile> tiles_for(const MatrixShape& shape) {
  const DType operands = shape.a.math;
  std::vector<ProductTile> result;
  for (const ProductTile& tile : product_tiles(operands, shape.rows, shape.columns)) {
    // Contiguous rows come in boxes of 128 bytes.
    if (shape.b.transpose && tile.n / tile.cluster % tile_depth(operands) != 0) continue;
    // Computed factors are not shared, and who computes wants registers, too.
    const int sums = tile.row_blocks() * tile.n / 2 * (promotes(operands) ? 2 : 1);
    if (shape.computes() && (tile.cluster > 1 || sums > 128)) continue;
    result.push_back(tile);
    // With four warpgroups a thread starts with 128 registers: for the sums and what multiplies.
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
         constant("kHasDepths", shape.depth_lengths.present()) +
         print(shape.row_lengths, "rows_of", "args.rows") +
         print(shape.column_lengths, "columns_of", "args.columns") +
         print(shape.depth_lengths, "depth_of", "args.depth");
}

class GemmSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.gemm_sm90"; }
  std::string_view description() const override {
    return "matrix products by the copy engine and warpgroup instructions of sm_90a";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    MatrixShape shape;
    if (Support support = describe(region, shape); !support) return support;
    if (Support support = is_for_hopper(device); !support) return support;
    return is_worth_dequantizing(region, *this, device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    const DType operands = shape.a.math;
    const double bytes = bit_width(operands) / 8.0;
    // Tiles are mostly padding where rows are few: memory waits, and longer where weights are
    // converted on their way (26 to 28 us instead of 18, 84 to 170 instead of 50 to 90).
    const bool converts = shape.a.converted() || shape.b.converted();
    const bool has_few_rows = std::min(shape.rows, shape.columns) <= 32;
    const double few_rows = !has_few_rows ? 1 : converts ? 6 : 1.7;
    const std::int64_t shared_depth =
        has_few_rows || converts || !region.reductions.empty() ? 0 : depth_blocks(shape);
    const auto config_of = [&](const ProductTile& tile) {
      Config config;
      config.knobs = knobs_of(tile);
      const TileRounds rounds(tile, cluster_tiles(shape, tile), device);
      const ProductTails tails = tails_of(region, shape, tile, rounds.grid);
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
           .tiles = static_cast<double>(rounds.whole * tile.cluster),
           .flops = 2 * area * depth,
           .load_bytes =
               depth * (shape.a.loaded_bytes() * tile.m +
                        shape.b.loaded_bytes() * static_cast<double>(tile.n) / tile.cluster),
           .store_bytes = std::max(result_bytes, 0.0) * area /
                          static_cast<double>(shape.batches * shape.rows * shape.columns),
           .memory_bytes = region.bytes() * few_rows + static_cast<double>(tails.scratch_bytes()),
           .cluster = tile.cluster,
           .split_tiles = static_cast<double>(rounds.split * tile.cluster),
           .splits = tile.splits,
           .streams = tile.streams,
           .persistent = tile.ping_pong,
           .launches = (tails.empty() ? 1 : 2) + (tile.streams ? 1 : 0),
           .efficiency = computing_efficiency(shape.a, shape.b, tile)},
          device, region.precision());
      config.scratch_bytes =
          tails.scratch_bytes() + StreamedTiles{tile, rounds, depth_blocks(shape)}.scratch_bytes();
      config.notes.runtime_compiled = true;
      config.notes.tf32 = shape.rounds_f32;
      config.notes.truncating_sums = operands != DType::i8;
      config.notes.reduced_precision_accumulation = promotes(operands);
      return config;
    };
    const auto stored = [&](const MatrixFactor& factor, std::int64_t lines) {
      return (factor.batch == 0 ? 1 : shape.batches) * lines * shape.depth * bit_width(operands) /
             8;
    };
    const StoredFactors factors{.row_bytes = stored(shape.a, shape.rows),
                                .column_bytes = stored(shape.b, shape.columns),
                                .columns = shape.columns,
                                .slow_to_bring = shape.computes()};
    std::vector<Config> result;
    for (const ProductTile& tile : tiles_for(shape))
      if (region.reductions.empty() ||
          has_room_for_tails(tile, region.reductions.size(), shape.computes()))
        add_configs(tile, cluster_tiles(shape, tile), shared_depth, factors, config_of, device,
                    region.precision(), result);
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    ProductTile tile = tile_of(config);
    const int steps = raw_steps(shape.a, shape.b, tile, tile.raw_bytes);
    const DType operands = shape.a.math;
    const int stages = stage_count(tile, device);
    const TileRounds rounds(tile, cluster_tiles(shape, tile), device);

    KernelDesign result;
    ProductTails tails = tails_of(region, shape, tile, rounds.grid);
    tails.book(result.scratch);
    result.unaligned = tails.empty() ? for_any_address(graph, region, config, device)
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
    arguments.number("depth_blocks", depth_blocks(shape));
    arguments.number("whole_work", rounds.whole);
    arguments.number("group_m", kBandRows / tile.cluster);
    const StreamedTiles streamed{tile, rounds, depth_blocks(shape)};
    streamed.add_arguments(result.scratch, arguments);
    arguments.real("padding_value", shape.padding_value);
    add_extents(arguments, shape.epilogue.space);
    tails.add_arguments(arguments);
    const auto factor = [&](const MatrixFactor& from, char which) {
      return print_factor(from.computed ? &*from.computed : nullptr, from.math, which, graph,
                          arguments);
    };
    const std::string printed =
        print_holding_program(shape.epilogue, graph, "epilogue", arguments) +
        print_ahead(shape.epilogue, tile.n, graph, arguments) + factor(shape.a, 'a') +
        factor(shape.b, 'b') + lengths_text(shape, graph, arguments);

    const ProductForm form{.a = operands,
                           .b = shape.b.math,
                           .transpose_a = shape.a.transpose,
                           .transpose_b = shape.b.transpose,
                           .vector = vector_length(shape.epilogue, most_vector(shape.columns)),
                           .rank = shape.epilogue.space.rank(),
                           .computes_a = shape.a.computed.has_value(),
                           .computes_b = shape.b.computed.has_value(),
                           .has_whole = rounds.whole > 0,
                           .has_tails = !tails.empty()};
    std::vector<const PointwiseProgram*> programs = {&shape.epilogue};
    for (const MatrixFactor* one : {&shape.a, &shape.b})
      if (one->computed) programs.push_back(&one->computed->program);
    const std::string head = register_types(region.precision(), programs) +
                             product_constants(tile, form, stages) + constant("kRawSteps", steps) +
                             tails.text() + arguments.struct_text() + printed;
    std::vector<std::string_view> files = {
        "lib/product_rows.cuh",
        "lib/ptx_wgmma_product.cuh",
        tile.streams ? "sm90/stream_work.cuh" : "sm90/split_work.cuh",
        "sm90/schedule.cuh",
        "sm90/load_matrix.cuh",
        "sm90/finish_matrix.cuh"};
    if (shape.computes())
      files.insert(files.end(), {"sm90/computed_pieces.cuh", "sm90/convert_rows.cuh",
                                 "sm90/compute_tiles.cuh", "sm90/compute_rows.cuh"});
    files.push_back("sm90/warpgroups.cuh");
    tails.add_files(files, "sm90/tails_matrix.cuh");
    files.push_back("sm90/join_parts.cuh");
    if (tile.streams) files.push_back("sm90/stream_parts.cuh");
    files.push_back("sm90/ask_ahead.cuh");
    files.push_back("sm90/mainloop.cuh");
    launch.source = {"gemm_sm90", assemble(files, head)};
    launch.function = "product";
    launch.threads = static_cast<unsigned>((tile.consumers + tile.producers) * 128);
    launch.shared_bytes = shared_bytes(tile, stages);
    launch.cluster = rounds.cluster;
    launch.grid.x = rounds.grid;
    streamed.add_reset(result.launches);
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
