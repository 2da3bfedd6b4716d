// Tiling of a convolution: number and order of its tiles, and their use of shared memory.
#pragma once

#include <optional>

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/sm90/packed_groups.hpp"
#include "cuda/engines/sm90/pixel_shape.hpp"

namespace ashlar::cuda {

// The tiles of a shape.
struct PixelTiling {
  using Phase = ImplicitGemm::Phase;
  const PixelShape& shape;
  const GemmTile& tile;

  std::int64_t tiles_m(const Phase& phase) const;  // in units of a cluster's CTAs
  std::int64_t tiles_n(const Phase& phase) const;
  std::int64_t count(const Phase& phase) const;
  std::int64_t count() const;
  bool phases_are_equal() const;
  std::int64_t k_blocks() const;
  // K-blocks of a tile that split-K may divide. Pixels of several phases have different taps, some
  // none: their tiles are not split, 0.
  std::int64_t split_k_blocks() const;
  // Clusters of the persistent grid. `keeps_columns`: each processes tiles of one column, so the
  // number of columns divides the number of clusters (with group_m = 1).
  std::int64_t clusters(const DeviceProps& device, bool keeps_columns) const;
  // Whether keeping columns leaves few enough SMs idle.
  bool can_keep_columns(const DeviceProps& device) const;
  // Rows of tiles that run concurrently with all their columns, or with kSwap all rows: pixels are
  // then read from DRAM once.
  std::int64_t band(const DeviceProps& device) const;
};

// Candidate tiles that the loader supports.
std::vector<GemmTile> pixel_tiles(const PixelShape& shape);
// The tile with an epilogue of TMA stores, where that is possible and may be faster.
std::optional<GemmTile> with_boxes(const PixelShape& shape, GemmTile tile);
// Whether the epilogue takes about as long as the mainloop.
bool is_short(const PixelShape& shape, const GemmTile& tile);

// Use of shared memory with halo windows.
struct WindowStages {
  std::int64_t rows = 0;  // of a window; 0: no windows
  int windows = 0, filters = 0;
  bool resident = false;  // all filters stay in shared memory
  unsigned bytes = 0;
  int side = 0;           // groups packed into one tile (PackedGroups); 0: no packs
  double efficiency = 1;  // of the tensor cores
};
WindowStages window_stages(const PackedGroups& group_pack, const GemmTile& tile);
WindowStages window_stages(const PixelShape& shape, const GemmTile& tile,
                           const DeviceProps& device);

}  // namespace ashlar::cuda
