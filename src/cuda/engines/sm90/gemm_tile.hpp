// Tile configuration of the sm90 GEMM kernels: the knobs, and what follows from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/engines/tile_cost.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

// The kernels of kernels/sm90 use wgmma and TMA, which no other compute capability has.
Support requires_hopper(const DeviceProps& device);

// Boxes of lib/epilogue_tma_store.cuh.
inline constexpr int kBoxRows = 16, kResidualBoxRows = 64, kBoxRowBytes = 128;

struct GemmTile {
  int m = 128, n = 128;  // of the output tile
  int consumers = 2;     // consumer (MMA) warpgroups
  // ping-pong schedule: a tile per warpgroup, mainloop and epilogue overlap
  bool ping_pong = false;
  int cluster = 1;  // CTAs along M that share B by TMA multicast
  int splits = 1;   // split-K: CTAs of a cluster that split K for the tiles of the tail wave
  // Stream-K: all CTAs share the tiles of the tail waves, a range of K-blocks each.
  bool streams = false;
  int depth_bytes = 128;  // K bytes per row and stage: 128, 64 or 32
  int producers = 1;      // producer warpgroups, more than one only if they compute operands
  int raw_bytes = 0;      // of shared memory, for packed weights before conversion
  // Staging buffers per warp for an epilogue with TMA stores (lib/epilogue_tma_store.cuh); 0:
  // threads store the results (lib/epilogue_rows.cuh).
  int boxes = 0;

  // Warpgroups that share one tile.
  int tile_warpgroups() const { return ping_pong ? 1 : consumers; }
  int row_blocks() const { return m / 64 / tile_warpgroups(); }
  // Variant of the kernel for the cost model, besides the tile shape (tile_cost.hpp).
  int variant() const {
    const int narrow = depth_bytes == 128 ? 0 : depth_bytes == 64 ? 8 : 16;
    return (ping_pong ? 1 : 0) + (cluster > 1 ? 2 : 0) + narrow + (boxes > 0 ? kWithTmaStore : 0);
  }
};

// BLOCK_K: elements of K in the 128 bytes that one stage holds of every row.
int block_k(DType operands);
// As many stages as shared memory holds besides the epilogue staging buffers.
int stage_count(const GemmTile& tile, const DeviceProps& device);
unsigned shared_bytes(const GemmTile& tile, int stages);

// Wave decomposition of `tiles`, counted in units of a cluster's CTAs: full waves of whole tiles
// first. The tiles of the tail wave are split tile.splits ways; with stream-K the tail wave and the
// full wave before it are shared.
struct TileWaves {
  TileWaves(const GemmTile& tile, std::int64_t tiles, const DeviceProps& device);
  std::int64_t whole, split;  // tiles
  unsigned grid;              // CTAs
  unsigned cluster;           // CTAs per cluster
};
// Size of the operands in memory, to estimate what L2 holds of them.
struct OperandBytes {
  // of the operand with the result's rows, of the one with its columns
  std::int64_t row_bytes, column_bytes;
  std::int64_t columns;         // of one result
  bool producer_bound = false;  // producer warps compute an operand and limit the rate, not memory
};
// Adds config_of(tile), and the same with split-K or stream-K over `k_blocks` K-blocks where that
// is possible and clearly cheaper.
void add_configs(const GemmTile& tile, std::int64_t tiles, std::int64_t k_blocks,
                 const OperandBytes& factors,
                 const std::function<Config(const GemmTile&)>& config_of, const DeviceProps& device,
                 DType precision, std::vector<Config>& to);

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const GemmTile& tile);
GemmTile tile_of(const Config& config);

// Whether threads have registers for tail reductions besides their accumulators. `computes`:
// producers compute an operand, and own some of the registers.
bool has_room_for_tails(const GemmTile& tile, std::size_t reductions, bool computes);

// Staging buffers that keep a warp from waiting: four, or two where other warpgroups run their
// mainloops meanwhile. They are used round-robin, so they divide the subtiles of a row. 0: the tile
// has no whole subtiles.
int boxes_of(const GemmTile& tile, DType results);

// Pipeline stages after a tile's K-blocks that hold the residual in the layout of result subtiles
// (kernels/sm90/residual_prefetch.cuh).
struct ResidualStages {
  int stages = 0, boxes = 0;  // boxes of each row per stage; 0: no room
};
ResidualStages residual_stages(const GemmTile& tile, DType results, const DeviceProps& device);

// Whether accumulators are promoted to f32 after every stage, because fp8 wgmma accumulates with
// fewer bits.
bool promotes(DType operands);

// Candidate tiles for a result of `rows` x `columns`.
std::vector<GemmTile> gemm_tiles(DType operands, std::int64_t rows, std::int64_t columns);

// The instruction `Mma` (text/wgmma_text.hpp), and the constants of sm90/mainloop.cuh. f32
// operands are multiplied as tf32.
struct GemmForm {
  DType a = bf16, b = bf16;
  bool transpose_a = false, transpose_b = false;  // M/N-major: contiguous along rows, not along K
  int vector = 1;                                 // of the epilogue
  int rank = 2;
  bool computes_a = false, computes_b = false;  // by producer warps, not loaded by TMA
  bool computes_some = false;   // producers compute some stages of operands that TMA loads
  int columns = 0;              // of one instruction; 0: those of the tile
  bool has_whole_tiles = true;  // tiles that are not split
  bool has_tails = false;       // reductions: lib/gemm_tails.cuh
  ResidualStages residual = {};
  DType results = bf16;  // element type of the residual boxes
};
std::string gemm_constants(const GemmTile& tile, const GemmForm& form, int stages);

}  // namespace ashlar::cuda
