// Matrix products on Hopper: tiles brought in by the copy engine, multiplied by warpgroups.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/any_address.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/asked_ahead.hpp"
#include "cuda/engines/sm90/matrix_shape.hpp"
#include "cuda/engines/sm90/streamed_tiles.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kBandRows = 16;    // of tiles that stay in the L2 cache together
constexpr double kDequantizeShare = 0.8;  // of the memory's speed, by a kernel that dequantises

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

// Stages that a warpgroup has copies of before it converts them: enough bytes on their way.
int raw_steps(const MatrixShape& shape, const ProductTile& tile, int& bytes) {
  constexpr int kEnough = 32 << 10, kMost = 8;
  const int depth = tile_depth(shape.a.math);
  int each = 0;
  if (const ConvertedFactor* a = shape.a.converted()) each += a->step_bytes(tile.m, depth);
  if (const ConvertedFactor* b = shape.b.converted()) each += b->step_bytes(tile.n, depth);
  each *= tile.producers;
  const int steps = each == 0 ? 1 : std::clamp(kEnough / each, 2, kMost);
  bytes = steps * each;
  return steps;
}

// Clocks that a warpgroup takes for its share of a stage's tile of a factor: estimates.
double clocks_of(const MatrixFactor& factor, const ProductTile& tile, int rows) {
  // A program waits for its loads, then takes some instructions for each piece of 16 bytes.
  constexpr double kLatency = 800, kPerPiece = 45;
  // Of a packet of 16 bytes: 62 to 115 instructions to convert it and 20 to copy it and its scale,
  // two of three clocks being the warp's.
  constexpr double kPerPacket = 80, kPerPair = 9;
  if (!factor.computed) return 0;
  if (const ConvertedFactor* converted = factor.converted())
    return converted->packets(rows, tile_depth(factor.math)) *
           (kPerPacket + kPerPair * converted->packet_elements() / 2);
  return kLatency + kPerPiece * rows * tile.depth_bytes / 16 / 128;
}

// What is left of the products' speed where factors are computed on the way in: every tile of the
// result computes those of its factors anew.
double efficiency(const MatrixShape& shape, const ProductTile& tile) {
  constexpr double kMost = 0.95;
  if (!shape.computes()) return 1;
  const double products =
      2.0 * tile.m * tile.n * tile.depth_bytes / 8192;  // 8192 per clock and byte
  const double clocks = clocks_of(shape.a, tile, tile.m) + clocks_of(shape.b, tile, tile.n);
  return std::min(kMost, products * tile.producers / clocks);
}

// What the programs read and write.
double bytes_of(const PointwiseProgram& prologue, const PointwiseProgram& epilogue = {}) {
  Region region;
  region.prologues = {prologue};
  region.epilogue = epilogue;
  return region.bytes();
}

// The region with tensors of weights in memory in place of their dequantisation.
Region after_dequantization(const Region& region) {
  Region result = region;
  for (std::size_t i = 0; i < result.prologues.size(); ++i)
    if (result.prologues[i].has_blocks())
      result.prologues[i] = plain_load(region.anchor->inputs[i]);
  return result;
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
    const bool has_blocks =
        std::any_of(region.prologues.begin(), region.prologues.end(),
                    [](const PointwiseProgram& prologue) { return prologue.has_blocks(); });
    if (!has_blocks) return Support::yes();
    // A kernel of its own dequantises each weight once, here each row of tiles does it again.
    const Region after = after_dequantization(region);
    double moved = 0;
    for (std::size_t i = 0; i < region.prologues.size(); ++i)
      if (region.prologues[i].has_blocks())
        moved += bytes_of(region.prologues[i]) + bytes_of(after.prologues[i]);
    const double here = seconds(region, device),
                 apart = seconds(after, device) + device.launch_seconds +
                         moved / (kDequantizeShare * device.bytes_per_second);
    if (here <= apart) return Support::yes();
    return Support::no("dequantising first takes {:.0f} us, on the way in {:.0f} us", apart * 1e6,
                       here * 1e6);
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
      const auto loaded = [&](const MatrixFactor& factor) {
        return factor.converted() ? bit_width(factor.converted()->numbers.dtype) / 8.0 : bytes;
      };
      config.cost = tile_cost(
          {.engine = id(),
           .operands = operands,
           .tile_m = tile.m,
           .tile_n = tile.n,
           .variant = tile.variant(),
           .tiles = static_cast<double>(rounds.whole * tile.cluster),
           .flops = 2 * area * depth,
           .load_bytes = depth * (loaded(shape.a) * tile.m +
                                  loaded(shape.b) * static_cast<double>(tile.n) / tile.cluster),
           .store_bytes = std::max(result_bytes, 0.0) * area /
                          static_cast<double>(shape.batches * shape.rows * shape.columns),
           .memory_bytes = region.bytes() * few_rows + static_cast<double>(tails.scratch_bytes()),
           .cluster = tile.cluster,
           .split_tiles = static_cast<double>(rounds.split * tile.cluster),
           .splits = tile.splits,
           .streams = tile.streams,
           .persistent = tile.ping_pong,
           .launches = (tails.empty() ? 1 : 2) + (tile.streams ? 1 : 0),
           .efficiency = efficiency(shape, tile)},
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
      if (region.reductions.empty() || has_room_for_tails(tile, shape.computes()))
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
    const int steps = raw_steps(shape, tile, tile.raw_bytes);
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
      files.insert(files.end(),
                   {"sm90/computed_pieces.cuh", "sm90/convert_rows.cuh", "sm90/compute_rows.cuh"});
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

 private:
  // Of the best configuration.
  double seconds(const Region& region, const DeviceProps& device) const {
    return configs(region, device).at(0).cost.seconds(device, region.precision());
  }
};

}  // namespace

const CudaEngine& gemm_sm90_engine() {
  static const GemmSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
