// What kernels cost that compute their result in tiles on matrix units: one model for all of them,
// whose constants are data (tile_calibration.inc, made from recorded timings by tools/fit_costs).
#pragma once

#include <string_view>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// Dense operations per second of the matrix units for operands of this dtype, results kept in f32
// (i32, f64); f32 operands are rounded to tf32. 0: the device has none for it.
double tensor_rate(const DeviceProps& device, DType operands);
// Bytes per second that all multiprocessors together load from the L2 cache.
double l2_bytes_per_second(const DeviceProps& device);

// Multiprocessors on which clusters of so many blocks can be at once, one block on each.
int cluster_sms(const DeviceProps& device, int cluster);

// One kernel, tile by tile. Only differences between configurations matter: what all of them share
// may be left out.
struct TileWork {
  std::string_view engine;  // "cuda.gemm_sm90": whose calibration
  DType operands = bf16;    // what the matrix units multiply
  int tile_m = 128, tile_n = 128;
  int variant = 0;          // of the engine's kernel, by a number of its own: calibrated apart
  double tiles = 1;         // of the whole grid: every part of a split sum is one
  double flops = 0;         // of one tile, 2 per multiply-add, padding to whole tiles included
  double load_bytes = 0;    // of one tile: operands brought into shared memory
  double store_bytes = 0;   // of one tile: read and written by its epilogue
  double memory_bytes = 0;  // of the whole kernel: region.bytes(), and partial sums of a split
  int blocks_per_sm = 1;    // resident together; they take turns at the matrix units
  int cluster = 1;          // blocks that need a place at the same moment
  // Tiles beside `tiles`, one part of their depth for each of the `splits` blocks of a cluster: the
  // last round, however few they are.
  double split_tiles = 0;
  int splits = 1;
  // Or all blocks share them, each a range of their stages, and pass sums on through memory.
  bool streams = false;
  bool persistent = false;  // the epilogue of a tile runs beside the products of the next one
  int launches = 1;         // 2: a second kernel adds the parts
  double efficiency = 1;    // what this configuration loses beside others of its tile: 0.9
};

// Ready for Config::cost. Its flops_fraction is a share of the vector units' peak, as everywhere,
// and passes 1 by far.
Cost tile_cost(const TileWork& work, const DeviceProps& device, DType precision = f32);

// The cheapest first.
void sort_by_cost(std::vector<Config>& configs, const DeviceProps& device, DType precision);

// --- the data: one row per engine, operands, tile and variant; a tile of 0 x 0 stands for all
// others, an engine without rows is taken for one of its core ("_sm90", else "_sm80")
struct TileCalibration {
  std::string_view engine;
  DType operands;
  int tile_m, tile_n, variant;
  double efficiency;    // share of tensor_rate that the products of a long tile reach
  double tile_seconds;  // of a tile beside its products: first loads, last results
  double hidden;        // share of the shorter of (products, memory) that costs no time
};
// Part of the number of a variant whose results the copy engine stores. Where no row has it, the
// row of the variant without it stands for it.
inline constexpr int kWithTmaStore = 64;
const TileCalibration& tile_calibration(std::string_view engine, DType operands, int tile_m,
                                        int tile_n, int variant);

}  // namespace ashlar::cuda
