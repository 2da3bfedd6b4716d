#include "cuda/engines/sm90/product_tile.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "base/fail.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr int kAlignment = 1024;  // of stages, whose swizzle it fits
constexpr int kMostStages = 8;

int bytes_of(DType operands) { return bit_width(operands) / 8; }

int stage_bytes(const ProductTile& tile) { return (tile.m + tile.n) * tile.depth_bytes; }

// lib/product_rows.cuh: wide slabs where tiles take turns, whose end has to keep pace with memory;
// elsewhere stages have more of the room.
int slab_columns(const ProductTile& tile) { return tile.ping_pong && tile.n >= 64 ? 64 : 32; }
int slab_bytes(const ProductTile& tile) {  // of a warp
  if (tile.boxes > 0) return tile.boxes * kBoxRows * kBoxRowBytes;
  return 16 * (slab_columns(tile) + 8) * 4;
}

// As PTX names the type of a factor.
const char* factor_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "tf32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::e4m3: return "e4m3";
    case DType::e5m2: return "e5m2";
    case DType::i8: return "s8";
    case DType::u8: return "u8";
    default: fail(ErrorCode::internal, "cuda: no matrix unit takes {}", to_string(dtype));
  }
}

// Of one instruction. Those that promote have two for a wide tile, whose sums take turns.
int product_columns(const ProductTile& tile, DType operands) {
  return promotes(operands) && tile.n == 256 ? 128 : tile.n;
}

std::string define(const char* name, const std::string& value) {
  return fmt::format("#define {} {}\n", name, value);
}

// Whether the blocks of a cluster can share the tiles of the last round: each has one part at most,
// and a part of the columns to finish.
bool can_split(const ProductTile& tile, std::int64_t tiles, std::int64_t depth_blocks,
               const DeviceProps& device) {
  constexpr int kLeastStages = 4;  // of a part, which waits for the first of them
  constexpr int kLeastColumns = 16, kSumBytes = 4;
  const int units = cluster_units(device, tile.splits);
  if (tile.cluster > 1 || units == 0 || depth_blocks < tile.splits * kLeastStages) return false;
  if (tile.boxes > 0) return false;
  const int columns = tile.n / tile.splits, slab = slab_columns(tile);
  if (tile.n % tile.splits != 0 || columns < kLeastColumns) return false;
  if (columns % slab != 0 && slab % columns != 0) return false;
  // The sums of a tile lie where its stages were.
  if (tile.m * tile.n * kSumBytes > stage_count(tile, device) * stage_bytes(tile)) return false;
  const std::int64_t rest = tiles % units;
  return rest > 0 && rest * tile.splits <= units;
}

// Whether the L2 cache has what blocks with ranges of stages read. Those with whole tiles walk
// through the depth in step, so that memory is read once for a whole row or column of tiles. Those
// with ranges are at different depths at any time: what several of them read has to stay in the
// cache until the last one was there. Measured on an H200 (bf16, e4m3): with 23 MB 8 % faster than
// what is chosen of whole and split tiles, with 60 to 450 MB mostly slower, up to twice.
bool stays_in_cache(const ProductTile& tile, const StoredFactors& factors,
                    const DeviceProps& device) {
  const std::int64_t room = device.l2_bytes / 2;
  if (factors.slow_to_bring || factors.row_bytes + factors.column_bytes <= room) return true;
  // Rows of one tile each are nobody else's. They pass through the cache beside the columns, which
  // clusters ask for half as often: 10 % faster with 71 MB and 9 MB; without clusters 5 to 20 %
  // slower.
  return tile.cluster > 1 && factors.columns <= tile.n && factors.column_bytes <= room;
}

// Whether all blocks can share the tiles of the last rounds by ranges of their stages.
bool can_stream(const ProductTile& tile, std::int64_t tiles, std::int64_t depth_blocks,
                const StoredFactors& factors, const DeviceProps& device) {
  constexpr int kLeastStages = 8;  // of a range, which may have the end of one tile and the begin
                                   // of another
  const int units = cluster_units(device, tile.cluster) / tile.cluster;
  if (units == 0 || tile.boxes > 0 || tiles % units == 0) return false;
  // Clusters share so few tiles in step (can_split): 19 us instead of 24 (256 x 1280 x 8192).
  if (2 * tiles <= units) return false;
  if (tile.row_blocks() * tile.n > 256) return false;  // registers, beside 160 sums
  if (!stays_in_cache(tile, factors, device)) return false;
  return TileRounds(tile, tiles, device).split * depth_blocks >= std::int64_t{units} * kLeastStages;
}

// What a thread that multiplies has left for the epilogue's loads, of the 240 that it takes (less
// where others compute a factor), beside its sums and what addresses and the program want. Ranges
// of stages want some, too.
int held_registers(const ProductTile& tile, bool computes) {
  constexpr int kAddresses = 80;
  const int all = computes ? 200 : 240;
  const int sums = tile.row_blocks() * 64 * tile.n / 128;
  return std::clamp(all - sums - kAddresses, 0, tile.streams ? 16 : 32);
}

}  // namespace

Support is_for_hopper(const DeviceProps& device) {
  constexpr int kHopper = 90;
  if (device.compute_capability == kHopper) return Support::yes();
  return Support::no("made for sm_90a, this is sm_{}", device.compute_capability);
}

int tile_depth(DType operands) { return 128 / bytes_of(operands); }

unsigned shared_bytes(const ProductTile& tile, int stages) {
  constexpr int kBarrierBytes = 8;  // two of a stage, one of a warpgroup, one of who computes
  const int others = (tile.consumers + 2) / 2 * 2;  // what comes behind them begins at 16 bytes
  return static_cast<unsigned>(stages * (stage_bytes(tile) + 2 * kBarrierBytes) +
                               others * kBarrierBytes + tile.raw_bytes +
                               tile.consumers * 4 * slab_bytes(tile) + kAlignment);
}

int stage_count(const ProductTile& tile, const DeviceProps& device) {
  int stages = kMostStages;
  while (stages > 1 && shared_bytes(tile, stages) > device.shared_bytes) --stages;
  return stages;
}

TileRounds::TileRounds(const ProductTile& tile, std::int64_t tiles, const DeviceProps& device) {
  const int together = std::max(tile.cluster, tile.splits);
  const std::int64_t units = cluster_units(device, together) / tile.cluster;
  whole = tile.streams       ? std::max<std::int64_t>(tiles / units - 1, 0) * units
          : tile.splits == 1 ? tiles
                             : tiles / units * units;
  split = tiles - whole;
  cluster = static_cast<unsigned>(together);
  if (tile.streams) {
    grid = static_cast<unsigned>(units * tile.cluster);
    return;
  }
  grid = static_cast<unsigned>((whole > 0 ? std::min(whole, units) : split * tile.splits) *
                               tile.cluster);
}

void add_configs(const ProductTile& tile, std::int64_t tiles, std::int64_t depth_blocks,
                 const StoredFactors& factors,
                 const std::function<Config(const ProductTile&)>& config_of,
                 const DeviceProps& device, DType precision, std::vector<Config>& to) {
  // Measured on an H200: blocks that share a tile gain 3 to 8 % less than estimated, of four and
  // eight up to a quarter less.
  const auto worth_it = [](int splits) { return splits == 2 ? 0.92 : 0.75; };
  const Config whole = config_of(tile);
  to.push_back(whole);
  for (const int splits : {2, 4, 8}) {
    ProductTile split = tile;
    split.splits = splits;
    if (!can_split(split, tiles, depth_blocks, device)) continue;
    Config config = config_of(split);
    if (config.cost.seconds(device, precision) <
        worth_it(splits) * whole.cost.seconds(device, precision))
      to.push_back(std::move(config));
  }
  constexpr double kWorthStreaming = 0.97;
  ProductTile streamed = tile;
  streamed.streams = true;
  if (depth_blocks == 0 || !can_stream(streamed, tiles, depth_blocks, factors, device)) return;
  Config config = config_of(streamed);
  if (config.cost.seconds(device, precision) <
      kWorthStreaming * whole.cost.seconds(device, precision))
    to.push_back(std::move(config));
}

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const ProductTile& tile) {
  std::vector<std::pair<std::string, std::int64_t>> knobs = {{"tile_m", tile.m},
                                                             {"tile_n", tile.n},
                                                             {"consumers", tile.consumers},
                                                             {"ping_pong", tile.ping_pong ? 1 : 0},
                                                             {"cluster", tile.cluster},
                                                             {"splits", tile.splits},
                                                             {"depth_bytes", tile.depth_bytes},
                                                             {"producers", tile.producers}};
  if (tile.streams) knobs.emplace_back("stream", 1);  // saved plans of before know no other
  return knobs;
}

ProductTile tile_of(const Config& config) {
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  const bool streams = std::any_of(config.knobs.begin(), config.knobs.end(),
                                   [](const auto& one) { return one.first == "stream"; });
  return {.m = knob("tile_m"),
          .n = knob("tile_n"),
          .consumers = knob("consumers"),
          .ping_pong = knob("ping_pong") != 0,
          .cluster = knob("cluster"),
          .splits = knob("splits"),
          .streams = streams,
          .depth_bytes = knob("depth_bytes"),
          .producers = knob("producers")};
}

bool has_room_for_tails(const ProductTile& tile, std::size_t reductions, bool computes) {
  constexpr std::size_t kMostBehindWideTiles = 3;  // one more spills
  if (tile.n > 128 && !tile.ping_pong && reductions > kMostBehindWideTiles) return false;
  return tile.row_blocks() * tile.n <= (computes && tile.ping_pong ? 128 : 256);
}

int boxes_of(const ProductTile& tile, DType results) {
  const int columns = kBoxRowBytes / bytes_of(results);
  if (tile.n % columns != 0 || tile.n * tile.depth_bytes % kAlignment != 0) return 0;
  const int of_rows = tile.n / columns;
  if (of_rows == 1) return tile.row_blocks();
  int boxes = tile.ping_pong ? 2 : 4;
  while (of_rows % boxes != 0) --boxes;
  return boxes;
}

BroughtStages brought_stages(const ProductTile& tile, DType results, const DeviceProps& device) {
  constexpr int kBytes = kBroughtRows * kBoxRowBytes;
  const auto all = ceil_div(tile.n, kBoxRowBytes / bytes_of(results));
  // Each of them is brought where its results will be.
  if (tile.boxes >= all * tile.row_blocks()) return {};
  const int room = tile.m * tile.depth_bytes / kBytes + tile.n * tile.depth_bytes / kBytes;
  const int most = room / (tile.m / kBroughtRows);
  if (most == 0) return {};
  const auto stages = static_cast<int>(ceil_div(all, most));
  // One at least for the depth of the next tile.
  if (stages >= stage_count(tile, device)) return {};
  return {.stages = stages, .boxes = static_cast<int>(ceil_div(all, stages))};
}

bool promotes(DType operands) { return operands == DType::e4m3 || operands == DType::e5m2; }

std::vector<ProductTile> product_tiles(DType operands, std::int64_t rows, std::int64_t columns) {
  // A wide tile reads the least per product; two tiles in turns hide what comes after the products.
  static const std::vector<ProductTile> all = {{.m = 128, .n = 256},
                                               {.m = 256, .n = 128},
                                               {.m = 128, .n = 128, .ping_pong = true},
                                               {.m = 64, .n = 256, .ping_pong = true},
                                               {.m = 64, .n = 192, .ping_pong = true},
                                               {.m = 128, .n = 192},
                                               {.m = 128, .n = 224},
                                               {.m = 256, .n = 160},
                                               {.m = 128, .n = 160},
                                               {.m = 128, .n = 128},
                                               {.m = 64, .n = 128, .ping_pong = true},
                                               {.m = 256, .n = 64},
                                               {.m = 128, .n = 64},
                                               {.m = 128, .n = 64, .ping_pong = true},
                                               {.m = 64, .n = 64, .ping_pong = true},
                                               {.m = 128, .n = 32, .ping_pong = true},
                                               {.m = 64, .n = 32, .ping_pong = true},
                                               {.m = 64, .n = 16, .ping_pong = true}};
  std::vector<ProductTile> result;
  for (const ProductTile& tile : all) {
    // The sums of a stage, of one product at a time, and those of all want registers of their own.
    if (promotes(operands) && tile.row_blocks() * tile.n + product_columns(tile, operands) > 384)
      continue;
    if (promotes(operands) && tile.row_blocks() > 1 && tile.n < 128) continue;
    // Who adds them up wants others to multiply meanwhile, which those with tiles of their own do
    // not.
    if (promotes(operands) && tile.ping_pong && rows > 64) continue;
    // For those of few columns.
    if (tile.m == 128 && tile.n == 64 && !tile.ping_pong && (!promotes(operands) || columns > 64))
      continue;
    if (!promotes(operands) && tile.m == 64 && tile.n == 192) continue;
    // Of tiles that reach past the result only the smallest of a kind.
    if (tile.n >= 2 * columns && tile.n > 16) continue;
    if (tile.m >= 2 * rows && tile.m > 64) continue;
    if (tile.n < 64 && columns > 2 * tile.n) continue;
    result.push_back(tile);
    if (rows > tile.m && tile.n >= 64) {
      result.push_back(tile);
      result.back().cluster = 2;
    }
  }
  return result;
}

std::string product_constants(const ProductTile& tile, const ProductForm& form, int stages) {
  const int bytes = bytes_of(form.a);
  const bool integers = form.a == DType::i8 || form.a == DType::u8;
  const auto major = [&](bool transpose) {
    return bytes != 2 ? std::string("\"\"") : fmt::format("\", {}\"", transpose ? 1 : 0);
  };
  const bool computes = form.computes_a || form.computes_b || form.computes_some;
  const int asked = (form.computes_a ? 0 : tile.m) + (form.computes_b ? 0 : tile.n);
  const char* tails = form.has_tails ? "ProductTails" : "NoTails";
  return fmt::format("typedef {} Sum;\n", integers ? "int" : "float") +
         fmt::format("struct {0};\ntypedef {0} TileTails;\n", tails) +
         constant("kComputes", computes) + constant("kProducers", tile.producers) +
         constant("kAskedBytes", asked * tile.depth_bytes) +
         define("WGMMA_N", fmt::format("{}", form.columns > 0 ? form.columns
                                                              : product_columns(tile, form.a))) +
         define("WGMMA_K", fmt::format("\"k{}\"", 32 / bytes)) +
         define("WGMMA_SUM", integers ? "s32" : "f32") + define("WGMMA_A", factor_name(form.a)) +
         define("WGMMA_B", factor_name(form.b)) +
         define("WGMMA_SCALES", integers ? "\"\"" : "\", 1, 1\"") +
         define("WGMMA_MAJOR_A", major(form.transpose_a)) +
         define("WGMMA_MAJOR_B", major(form.transpose_b)) +
         define("WGMMA_REGISTER", integers ? "\"r\"" : "\"f\"") + constant("kTileM", tile.m) +
         constant("kTileN", tile.n) + constant("kTileDepth", tile.depth_bytes / bytes) +
         constant("kElementBytes", bytes) + constant("kStages", stages) +
         constant("kConsumers", tile.consumers) + constant("kPingPong", tile.ping_pong) +
         constant("kCluster", tile.cluster) + constant("kRowBlocks", tile.row_blocks()) +
         constant("kTransposeA", form.transpose_a) + constant("kTransposeB", form.transpose_b) +
         constant("kSplits", tile.splits) + constant("kStreams", tile.streams) +
         constant("kHasWhole", form.has_whole || tile.streams) +
         constant("kBlocksPerProcessor", 1) + constant("kPromotes", promotes(form.a)) +
         constant("kHeldRegisters", held_registers(tile, computes)) +
         constant("kSlabColumns", slab_columns(tile)) + constant("kBoxes", tile.boxes) +
         constant("kBroughtStages", form.brought.stages) +
         constant("kBroughtBoxes", std::max(form.brought.boxes, 1)) +
         constant("kBroughtColumns", kBoxRowBytes / bytes_of(form.results)) +
         constant("kVector", form.vector) + constant("kRank", form.rank);
}

}  // namespace ashlar::cuda
