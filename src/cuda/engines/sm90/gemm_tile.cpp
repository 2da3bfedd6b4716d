#include "cuda/engines/sm90/gemm_tile.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "base/fail.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr int kAlignment = 1024;  // of stages: the period of the swizzle
constexpr int kMaxStages = 8;

int bytes_of(DType operands) { return bit_width(operands) / 8; }

int stage_bytes(const GemmTile& tile) { return (tile.m + tile.n) * tile.depth_bytes; }

// lib/epilogue_rows.cuh: wide staging buffers in the ping-pong schedule, whose epilogue must keep
// pace with memory; otherwise stages get more of the shared memory.
int staging_columns(const GemmTile& tile) { return tile.ping_pong && tile.n >= 64 ? 64 : 32; }
int staging_bytes(const GemmTile& tile) {  // per warp
  if (tile.boxes > 0) return tile.boxes * kBoxRows * kBoxRowBytes;
  return 16 * (staging_columns(tile) + 8) * 4;
}

// N of one wgmma. Wide tiles that promote use two instructions, which share the accumulators of a
// stage.
int instruction_columns(const GemmTile& tile, DType operands) {
  return promotes(operands) && tile.n == 256 ? 128 : tile.n;
}

// Whether split-K within clusters can cover the tail wave: at most one split tile per CTA, and
// whole columns for each CTA to reduce.
bool can_split(const GemmTile& tile, std::int64_t tiles, std::int64_t k_blocks,
               const DeviceProps& device) {
  constexpr int kLeastStages = 4;  // per split, which waits for its first stage
  constexpr int kLeastColumns = 16, kSumBytes = 4;
  const int units = cluster_sms(device, tile.splits);
  if (tile.cluster > 1 || units == 0 || k_blocks < tile.splits * kLeastStages) return false;
  if (tile.boxes > 0) return false;
  const int columns = tile.n / tile.splits, staging = staging_columns(tile);
  if (tile.n % tile.splits != 0 || columns < kLeastColumns) return false;
  if (columns % staging != 0 && staging % columns != 0) return false;
  // The accumulators of a tile must fit where its stages were.
  if (tile.m * tile.n * kSumBytes > stage_count(tile, device) * stage_bytes(tile)) return false;
  const std::int64_t rest = tiles % units;
  return rest > 0 && rest * tile.splits <= units;
}

// Whether L2 holds what stream-K CTAs read. CTAs with whole tiles advance through K in step, so
// DRAM is read once for a whole row or column of tiles. Stream-K CTAs are at different k at any
// time: shared operand tiles must stay in L2 until the last CTA has read them. Measured on an H200
// (bf16, e4m3): with 23 MB 8 % faster than the best of whole and split tiles, with 60 to 450 MB
// mostly slower, up to twice.
bool stays_in_cache(const GemmTile& tile, const OperandBytes& factors, const DeviceProps& device) {
  const std::int64_t room = device.l2_bytes / 2;
  if (factors.producer_bound || factors.row_bytes + factors.column_bytes <= room) return true;
  // A single column of tiles: no two CTAs share rows. The rows stream through L2 alongside the
  // columns, which clusters load half as often: 10 % faster with 71 MB and 9 MB; without clusters 5
  // to 20 % slower.
  return tile.cluster > 1 && factors.columns <= tile.n && factors.column_bytes <= room;
}

// Whether stream-K can share the tiles of the tail waves.
bool can_stream_k(const GemmTile& tile, std::int64_t tiles, std::int64_t k_blocks,
                  const OperandBytes& factors, const DeviceProps& device) {
  constexpr int kLeastStages = 8;  // of a range, which may hold the end of one tile and the begin
                                   // of another
  const int units = cluster_sms(device, tile.cluster) / tile.cluster;
  if (units == 0 || tile.boxes > 0 || tiles % units == 0) return false;
  // Few tiles are better split within clusters (can_split): 19 us instead of 24 (256 x 1280 x
  // 8192).
  if (2 * tiles <= units) return false;
  // registers: at most 128 accumulators per thread
  if (tile.row_blocks() * tile.n > 256) return false;
  if (!stays_in_cache(tile, factors, device)) return false;
  return TileWaves(tile, tiles, device).split * k_blocks >= std::int64_t{units} * kLeastStages;
}

// Registers that a consumer thread has for operands of the epilogue: of its 240 (fewer where
// producers compute an operand), besides accumulators, addresses and the program. Stream-K needs
// some, too.
int held_registers(const GemmTile& tile, bool computes) {
  constexpr int kAddresses = 80;
  const int all = computes ? 200 : 240;
  const int sums = tile.row_blocks() * 64 * tile.n / 128;
  return std::clamp(all - sums - kAddresses, 0, tile.streams ? 16 : 32);
}

}  // namespace

Support requires_hopper(const DeviceProps& device) {
  constexpr int kHopper = 90;
  if (device.compute_capability == kHopper) return Support::yes();
  return Support::no("requires sm_90a, the device is sm_{}", device.compute_capability);
}

int block_k(DType operands) { return 128 / bytes_of(operands); }

unsigned shared_bytes(const GemmTile& tile, int stages) {
  constexpr int kBarrierBytes = 8;  // two per stage, one per warpgroup, one for computing producers
  const int others = (tile.consumers + 2) / 2 * 2;  // aligns the buffers behind them to 16 bytes
  return static_cast<unsigned>(stages * (stage_bytes(tile) + 2 * kBarrierBytes) +
                               others * kBarrierBytes + tile.raw_bytes +
                               tile.consumers * 4 * staging_bytes(tile) + kAlignment);
}

int stage_count(const GemmTile& tile, const DeviceProps& device) {
  int stages = kMaxStages;
  while (stages > 1 && shared_bytes(tile, stages) > device.shared_bytes) --stages;
  return stages;
}

TileWaves::TileWaves(const GemmTile& tile, std::int64_t tiles, const DeviceProps& device) {
  const int together = std::max(tile.cluster, tile.splits);
  const std::int64_t units = cluster_sms(device, together) / tile.cluster;
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

void add_configs(const GemmTile& tile, std::int64_t tiles, std::int64_t k_blocks,
                 const OperandBytes& factors,
                 const std::function<Config(const GemmTile&)>& config_of, const DeviceProps& device,
                 DType precision, std::vector<Config>& to) {
  // Measured on an H200: split-K gains 3 to 8 % less than estimated, with four and eight splits up
  // to a quarter less.
  const auto worth_it = [](int splits) { return splits == 2 ? 0.92 : 0.75; };
  const Config whole = config_of(tile);
  to.push_back(whole);
  for (const int splits : {2, 4, 8}) {
    GemmTile split = tile;
    split.splits = splits;
    if (!can_split(split, tiles, k_blocks, device)) continue;
    Config config = config_of(split);
    if (config.cost.seconds(device, precision) <
        worth_it(splits) * whole.cost.seconds(device, precision))
      to.push_back(std::move(config));
  }
  constexpr double kWorthStreaming = 0.97;
  GemmTile stream_k = tile;
  stream_k.streams = true;
  if (k_blocks == 0 || !can_stream_k(stream_k, tiles, k_blocks, factors, device)) return;
  Config config = config_of(stream_k);
  if (config.cost.seconds(device, precision) <
      kWorthStreaming * whole.cost.seconds(device, precision))
    to.push_back(std::move(config));
}

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const GemmTile& tile) {
  std::vector<std::pair<std::string, std::int64_t>> knobs = {{"tile_m", tile.m},
                                                             {"tile_n", tile.n},
                                                             {"consumers", tile.consumers},
                                                             {"ping_pong", tile.ping_pong ? 1 : 0},
                                                             {"cluster", tile.cluster},
                                                             {"splits", tile.splits},
                                                             {"depth_bytes", tile.depth_bytes},
                                                             {"producers", tile.producers}};
  // absent otherwise: plans saved by earlier versions do not know it
  if (tile.streams) knobs.emplace_back("stream", 1);
  return knobs;
}

GemmTile tile_of(const Config& config) {
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

bool has_room_for_tails(const GemmTile& tile, std::size_t reductions, bool computes) {
  constexpr std::size_t kMaxBehindWideTiles = 3;  // one more spills
  if (tile.n > 128 && !tile.ping_pong && reductions > kMaxBehindWideTiles) return false;
  return tile.row_blocks() * tile.n <= (computes && tile.ping_pong ? 128 : 256);
}

int boxes_of(const GemmTile& tile, DType results) {
  const int columns = kBoxRowBytes / bytes_of(results);
  if (tile.n % columns != 0 || tile.n * tile.depth_bytes % kAlignment != 0) return 0;
  const int of_rows = tile.n / columns;
  if (of_rows == 1) return tile.row_blocks();
  int boxes = tile.ping_pong ? 2 : 4;
  while (of_rows % boxes != 0) --boxes;
  return boxes;
}

ResidualStages residual_stages(const GemmTile& tile, DType results, const DeviceProps& device) {
  constexpr int kBytes = kResidualBoxRows * kBoxRowBytes;
  const auto all = ceil_div(tile.n, kBoxRowBytes / bytes_of(results));
  // All subtiles of the residual fit the staging buffers of their results.
  if (tile.boxes >= all * tile.row_blocks()) return {};
  const int room = tile.m * tile.depth_bytes / kBytes + tile.n * tile.depth_bytes / kBytes;
  const int most = room / (tile.m / kResidualBoxRows);
  if (most == 0) return {};
  const auto stages = static_cast<int>(ceil_div(all, most));
  // Leaves at least one stage for the K-blocks of the next tile.
  if (stages >= stage_count(tile, device)) return {};
  return {.stages = stages, .boxes = static_cast<int>(ceil_div(all, stages))};
}

bool promotes(DType operands) { return operands == DType::e4m3 || operands == DType::e5m2; }

std::vector<GemmTile> gemm_tiles(DType operands, std::int64_t rows, std::int64_t columns) {
  // Wide tiles have the highest arithmetic intensity; the ping-pong schedule hides the epilogue.
  static const std::vector<GemmTile> all = {{.m = 128, .n = 256},
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
  std::vector<GemmTile> result;
  for (const GemmTile& tile : all) {
    // The accumulators of a stage, one instruction at a time, need registers besides those of the
    // tile.
    if (promotes(operands) &&
        tile.row_blocks() * tile.n + instruction_columns(tile, operands) > 384)
      continue;
    if (promotes(operands) && tile.row_blocks() > 1 && tile.n < 128) continue;
    // Promotion needs other warpgroups to run wgmma meanwhile, which the order barrier of ping-pong
    // prevents.
    if (promotes(operands) && tile.ping_pong && rows > 64) continue;
    // Only for few columns.
    if (tile.m == 128 && tile.n == 64 && !tile.ping_pong && (!promotes(operands) || columns > 64))
      continue;
    if (!promotes(operands) && tile.m == 64 && tile.n == 192) continue;
    // Of tiles that exceed the result only the smallest of a kind.
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

std::string gemm_constants(const GemmTile& tile, const GemmForm& form, int stages) {
  const int bytes = bytes_of(form.a);
  const bool computes = form.computes_a || form.computes_b || form.computes_some;
  const int asked = (form.computes_a ? 0 : tile.m) + (form.computes_b ? 0 : tile.n);
  const char* tails = form.has_tails ? "GemmTails" : "NoTails";
  const Wgmma mma{.a = form.a,
                  .b = form.b,
                  .n = form.columns > 0 ? form.columns : instruction_columns(tile, form.a),
                  .transpose_a = form.transpose_a,
                  .transpose_b = form.transpose_b};
  return print_wgmma("Mma", mma) + fmt::format("struct {0};\ntypedef {0} TileTails;\n", tails) +
         constant("kComputes", computes) + constant("kProducers", tile.producers) +
         constant("kTmaBytes", asked * tile.depth_bytes) + constant("kTileM", tile.m) +
         constant("kTileN", tile.n) + constant("kBlockK", tile.depth_bytes / bytes) +
         constant("kElementBytes", bytes) + constant("kStages", stages) +
         constant("kConsumers", tile.consumers) + constant("kPingPong", tile.ping_pong) +
         constant("kCluster", tile.cluster) + constant("kRowBlocks", tile.row_blocks()) +
         constant("kTransposeA", form.transpose_a) + constant("kTransposeB", form.transpose_b) +
         constant("kSplits", tile.splits) + constant("kStreams", tile.streams) +
         constant("kHasWholeTiles", form.has_whole_tiles || tile.streams) +
         constant("kBlocksPerSm", 1) + constant("kPromotes", promotes(form.a)) +
         constant("kHeldRegisters", held_registers(tile, computes)) +
         constant("kStagingColumns", staging_columns(tile)) +
         constant("kStoreBuffers", tile.boxes) + constant("kResidualStages", form.residual.stages) +
         constant("kResidualBoxes", std::max(form.residual.boxes, 1)) +
         constant("kResidualBoxColumns", kBoxRowBytes / bytes_of(form.results)) +
         constant("kVector", form.vector) + constant("kRank", form.rank);
}

}  // namespace ashlar::cuda
