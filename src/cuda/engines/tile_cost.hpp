// Cost model of tiled tensor-core kernels: one model for all of them, whose constants are data
// (tile_calibration.inc, fitted to recorded timings by tools/fit_costs).
#pragma once

#include <string_view>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// Dense tensor-core operations per second for operands of this dtype with f32 (i32, f64)
// accumulators; f32 operands are rounded to tf32. 0: not supported by the device.
double tensor_rate(const DeviceProps& device, DType operands);
// Bytes per second that all SMs together load from L2.
double l2_bytes_per_second(const DeviceProps& device);

// SMs that clusters of `cluster` CTAs can occupy at once, one CTA each.
int cluster_sms(const DeviceProps& device, int cluster);

// One kernel, tile by tile. Only differences between configurations matter: common terms may be
// left out.
struct TileWork {
  std::string_view engine;  // "cuda.gemm_sm90": whose calibration
  DType operands = bf16;    // of the tensor cores
  int tile_m = 128, tile_n = 128;
  int variant = 0;          // of the engine's kernel, calibrated separately
  double tiles = 1;         // of the whole grid: every split of a tile counts
  double flops = 0;         // of one tile, 2 per multiply-add, padding to whole tiles included
  double load_bytes = 0;    // of one tile: operands loaded into shared memory
  double store_bytes = 0;   // of one tile: read and written by its epilogue
  double memory_bytes = 0;  // of the whole kernel: region.bytes(), and split-K partials
  int blocks_per_sm = 1;    // resident together; they share the tensor cores
  int cluster = 1;          // CTAs that must be co-resident
  // Tiles of the tail wave, in addition to `tiles`: each is split along K over the `splits` CTAs of
  // a cluster, however few they are.
  double split_tiles = 0;
  int splits = 1;
  // Or stream-K: all CTAs share them, a range of K-blocks each, and exchange partials through
  // memory.
  bool streams = false;
  bool persistent = false;  // the epilogue of a tile overlaps with the mainloop of the next one
  int launches = 1;         // 2: a second kernel adds the partials
  double efficiency = 1;    // loss of this configuration relative to others of its tile: 0.9
};

// For Config::cost. Its flops_fraction is a share of the CUDA-core peak, as everywhere, and exceeds
// 1 by far.
Cost tile_cost(const TileWork& work, const DeviceProps& device, DType precision = f32);

// The cheapest first.
void sort_by_cost(std::vector<Config>& configs, const DeviceProps& device, DType precision);

// --- the data: one row per engine, operands, tile and variant; a tile of 0 x 0 stands for all
// others, an engine without rows uses those of its core ("_sm90", else "_sm80")
struct TileCalibration {
  std::string_view engine;
  DType operands;
  int tile_m, tile_n, variant;
  double efficiency;    // share of tensor_rate that a long mainloop reaches
  double tile_seconds;  // prologue and epilogue of a tile: first loads, last stores
  double hidden;        // share of the shorter of (mainloop, memory) that overlaps
};
// Flag in the variant of kernels with TMA stores. Where no row has it, the row of the variant
// without it is used.
inline constexpr int kWithTmaStore = 64;
const TileCalibration& tile_calibration(std::string_view engine, DType operands, int tile_m,
                                        int tile_n, int variant);

}  // namespace ashlar::cuda
