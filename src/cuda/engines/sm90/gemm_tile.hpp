// How a matrix product of kernels/sm90 is cut: the choices that are knobs, and what follows from
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/engines/tile_cost.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

// Kernels of kernels/sm90 use instructions that no other generation has.
Support requires_hopper(const DeviceProps& device);

// Of the results, by lib/epilogue_tma_store.cuh.
inline constexpr int kBoxRows = 16, kResidualBoxRows = 64, kBoxRowBytes = 128;

struct GemmTile {
  int m = 128, n = 128;    // of the result
  int consumers = 2;       // warpgroups that multiply
  bool ping_pong = false;  // each has tiles of its own, and finishes them while the others multiply
  int cluster = 1;         // blocks, one above the other, that load their columns together
  int splits = 1;          // blocks that share the depth of tiles which do not fill a round
  // All blocks share the tiles of the last rounds, each a range of their stages (stream-K).
  bool streams = false;
  int depth_bytes = 128;  // that a stage holds of every row: 128, 64 or 32
  int producers = 1;      // warpgroups that bring the factors, more than one if they compute them
  int raw_bytes = 0;      // of shared memory, for factors as they are before they are converted
  // Results leave by the copy engine through so many boxes of each warp
  // (lib/epilogue_tma_store.cuh); 0: threads store them (lib/epilogue_rows.cuh).
  int boxes = 0;

  // Warpgroups that have rows of one tile.
  int tile_warpgroups() const { return ping_pong ? 1 : consumers; }
  int row_blocks() const { return m / 64 / tile_warpgroups(); }
  // What differs for the cost model beside the extents (tile_cost.hpp).
  int variant() const {
    const int narrow = depth_bytes == 128 ? 0 : depth_bytes == 64 ? 8 : 16;
    return (ping_pong ? 1 : 0) + (cluster > 1 ? 2 : 0) + narrow + (boxes > 0 ? kWithTmaStore : 0);
  }
};

// Depth that a stage holds of 128 bytes of every row.
int block_k(DType operands);
// As many stages as shared memory holds beside what rows are put in order in.
int stage_count(const GemmTile& tile, const DeviceProps& device);
unsigned shared_bytes(const GemmTile& tile, int stages);

// How `tiles`, counted in units of a cluster's blocks, come to the blocks of a launch: round after
// round, whole ones first. What is left for the last round is cut into tile.splits parts; where
// tiles are streamed, it and the full round before it.
struct TileWaves {
  TileWaves(const GemmTile& tile, std::int64_t tiles, const DeviceProps& device);
  std::int64_t whole, split;  // tiles
  unsigned grid;              // blocks
  unsigned cluster;           // of them
};
// The factors as memory has them, for who asks what the L2 cache holds of them.
struct OperandBytes {
  std::int64_t row_bytes, column_bytes;  // of that with the result's rows, of that with its columns
  std::int64_t columns;                  // of one result
  bool producer_bound = false;           // by warps that compute them: memory waits for those
};
// Adds what `config_of` makes of the tile, and of the same with its last rounds cut into parts of
// `k_blocks` stages where that can be done and costs clearly less.
void add_configs(const GemmTile& tile, std::int64_t tiles, std::int64_t k_blocks,
                 const OperandBytes& factors,
                 const std::function<Config(const GemmTile&)>& config_of, const DeviceProps& device,
                 DType precision, std::vector<Config>& to);

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const GemmTile& tile);
GemmTile tile_of(const Config& config);

// Whether threads have registers for reductions behind the product beside their sums. `computes`:
// others compute a factor, and have some of them.
bool has_room_for_tails(const GemmTile& tile, std::size_t reductions, bool computes);

// As many boxes of results as keep a warp from waiting: four, or two where other warpgroups
// multiply meanwhile. They are written in turns, so they divide those of a row. 0: the tile has no
// whole ones.
int boxes_of(const GemmTile& tile, DType results);

// What the epilogue reads beside the sums, as large as the results and in their boxes, brought to
// stages of the ring behind those of a tile's depth (kernels/sm90/residual_prefetch.cuh).
struct ResidualStages {
  int stages = 0, boxes = 0;  // boxes of each row that a stage has; 0: there is no room for it
};
ResidualStages residual_stages(const GemmTile& tile, DType results, const DeviceProps& device);

// Whether sums are added in f32 after every stage, because those of the units have fewer bits.
bool promotes(DType operands);

// Tiles worth trying for a result of so many rows and columns.
std::vector<GemmTile> gemm_tiles(DType operands, std::int64_t rows, std::int64_t columns);

// The instruction, as lib/ptx_wgmma_mma_async.cuh wants to be told of it, and the constants of
// sm90/mainloop.cuh. f32 operands are multiplied as tf32.
struct GemmForm {
  DType a = bf16, b = bf16;
  bool transpose_a = false, transpose_b = false;  // rows are contiguous, not their depth
  int vector = 1;                                 // of the epilogue
  int rank = 2;
  bool computes_a = false, computes_b = false;  // not brought by the copy engine
  bool computes_some = false;                   // some stages of what else that brings
  int columns = 0;                              // of one instruction; 0: those of the tile
  bool has_whole_tiles = true;                  // tiles that are not split
  bool has_tails = false;                       // reductions: lib/gemm_tails.cuh
  ResidualStages residual = {};
  DType results = bf16;  // whose boxes these are in
};
std::string gemm_constants(const GemmTile& tile, const GemmForm& form, int stages);

}  // namespace ashlar::cuda
