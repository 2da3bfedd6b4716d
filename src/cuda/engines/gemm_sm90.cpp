// Matrix products on Hopper: tiles brought in by the copy engine, multiplied by warpgroups.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/matrix_shape.hpp"
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

std::int64_t grid_of(const MatrixShape& shape, const ProductTile& tile, const DeviceProps& device) {
  return std::min<std::int64_t>(cluster_tiles(shape, tile), device.compute_units / tile.cluster) *
         tile.cluster;
}

ProductTails tails_of(const Region& region, const MatrixShape& shape, const ProductTile& tile,
                      const DeviceProps& device) {
  const std::int64_t above = ceil_div(shape.rows, tile.m * tile.cluster) * tile.cluster;
  return {region,
          shape.axes,
          {.rows = above * tile.sharers(),
           .columns = ceil_div(shape.columns, tile.n),
           .warps = grid_of(shape, tile, device) * tile.consumers * 4}};
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
    if (!shape.computes() || tile.m * tile.n < 128 * 128 || sums > 96) continue;
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

// What is left of the products' speed where factors are computed on the way in: a warpgroup waits
// for its loads, then takes some instructions for each piece of 16 bytes. Estimates, in clocks.
double efficiency(const MatrixShape& shape, const ProductTile& tile) {
  if (!shape.computes()) return 1;
  constexpr double kLatency = 800, kPerPiece = 45, kMost = 0.95;
  const double rows = (shape.a.computed ? tile.m : 0) + (shape.b.computed ? tile.n : 0);
  const double pieces = rows * tile.depth_bytes / 16 / 128;  // of a thread
  const double products =
      2.0 * tile.m * tile.n * tile.depth_bytes / 8192;  // 8192 per clock and byte
  return std::min(kMost, products * tile.producers / (kLatency + kPerPiece * pieces));
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
    return is_for_hopper(device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    const DType operands = shape.a.math;
    const double bytes = bit_width(operands) / 8.0;
    // What a few rows take of memory's speed was measured of cuda.gemm_skinny alone: it comes
    // first.
    const double few_rows = std::min(shape.rows, shape.columns) <= 32 ? 1.25 : 1;
    std::vector<Config> result;
    for (const ProductTile& tile : tiles_for(shape)) {
      if (!region.reductions.empty() && (tile.splits > 1 || !has_room_for_tails(tile))) continue;
      const ProductTails tails = tails_of(region, shape, tile, device);
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      const auto area = static_cast<double>(tile.m * tile.n),
                 depth = static_cast<double>(shape.depth);
      const double result_bytes =
          region.bytes() - bytes * depth * static_cast<double>(shape.batches) *
                               static_cast<double>(shape.rows + shape.columns);
      config.cost = tile_cost(
          {.engine = id(),
           .operands = operands,
           .tile_m = tile.m,
           .tile_n = tile.n,
           .variant = tile.variant(),
           .tiles = static_cast<double>(cluster_tiles(shape, tile) * tile.cluster),
           .flops = 2 * area * depth,
           .load_bytes = bytes * depth * (tile.m + static_cast<double>(tile.n) / tile.cluster),
           .store_bytes = std::max(result_bytes, 0.0) * area /
                          static_cast<double>(shape.batches * shape.rows * shape.columns),
           .memory_bytes = region.bytes() * few_rows + static_cast<double>(tails.scratch_bytes()),
           .cluster = tile.cluster,
           .persistent = tile.ping_pong,
           .launches = tails.empty() ? 1 : 2,
           .efficiency = efficiency(shape, tile)},
          device, region.precision());
      config.scratch_bytes = tails.scratch_bytes();
      config.notes.runtime_compiled = true;
      config.notes.tf32 = shape.rounds_f32;
      config.notes.truncating_sums = operands != DType::i8;
      config.notes.reduced_precision_accumulation = promotes(operands);
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    MatrixShape shape;
    describe(region, shape);
    const ProductTile tile = tile_of(config);
    const DType operands = shape.a.math;
    const int stages = stage_count(tile, device);

    KernelDesign result;
    ProductTails tails = tails_of(region, shape, tile, device);
    tails.book(result.scratch);
    result.unaligned = std::make_shared<KernelDesign>(
        tails.empty() ? generic_engine().design(graph, region, {}, device)
                      : tails.unaligned(graph, region, device));
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
    arguments.number("depth_blocks", ceil_div(shape.depth, tile_depth(operands)));
    arguments.number("splits", 1);
    arguments.number("group_m", kBandRows / tile.cluster);
    arguments.real("padding_value", shape.padding_value);
    add_extents(arguments, shape.epilogue.space);
    tails.add_arguments(arguments);
    const auto factor = [&](const MatrixFactor& from, char which) {
      return print_factor(from.computed ? &*from.computed : nullptr, from.math, which, graph,
                          arguments);
    };
    const std::string printed = print_program(shape.epilogue, graph, "epilogue", arguments) +
                                factor(shape.a, 'a') + factor(shape.b, 'b') +
                                lengths_text(shape, graph, arguments);

    const ProductForm form{.a = operands,
                           .b = shape.b.math,
                           .transpose_a = shape.a.transpose,
                           .transpose_b = shape.b.transpose,
                           .vector = vector_length(shape.epilogue, most_vector(shape.columns)),
                           .rank = shape.epilogue.space.rank(),
                           .computes_a = shape.a.computed.has_value(),
                           .computes_b = shape.b.computed.has_value(),
                           .has_tails = !tails.empty()};
    std::vector<const PointwiseProgram*> programs = {&shape.epilogue};
    for (const MatrixFactor* one : {&shape.a, &shape.b})
      if (one->computed) programs.push_back(&one->computed->program);
    const std::string head = register_types(region.precision(), programs) +
                             product_constants(tile, form, stages) + tails.text() +
                             arguments.struct_text() + printed;
    std::vector<std::string_view> files = {"lib/product_rows.cuh", "lib/ptx_wgmma_product.cuh",
                                           "sm90/schedule.cuh", "sm90/load_matrix.cuh",
                                           "sm90/finish_matrix.cuh"};
    if (shape.computes()) files.push_back("sm90/compute_rows.cuh");
    files.push_back("sm90/warpgroups.cuh");
    tails.add_files(files, "sm90/tails_matrix.cuh");
    files.push_back("sm90/mainloop.cuh");
    launch.source = {"gemm_sm90", assemble(files, head)};
    launch.function = "product";
    launch.threads = static_cast<unsigned>((tile.consumers + tile.producers) * 128);
    launch.shared_bytes = shared_bytes(tile, stages);
    launch.cluster = static_cast<unsigned>(tile.cluster);
    launch.grid.x = static_cast<unsigned>(grid_of(shape, tile, device));
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
