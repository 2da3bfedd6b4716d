// How the tiles of a convolution are laid out and walked, and how they use shared memory.
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

  std::int64_t tiles_m(const Phase& phase) const;  // in units of a cluster's blocks
  std::int64_t tiles_n(const Phase& phase) const;
  std::int64_t count(const Phase& phase) const;
  std::int64_t count() const;
  bool phases_are_equal() const;
  std::int64_t k_blocks() const;
  // Stages of a tile that the blocks of a cluster may share. Pixels of several phases see different
  // taps, some of them none: those tiles stay whole, with 0.
  std::int64_t split_k_blocks() const;
  // Clusters of blocks that walk through them. `keeps_columns`: each has tiles of the same columns,
  // whose number then divides the clusters' (with group_m = 1).
  std::int64_t clusters(const DeviceProps& device, bool keeps_columns) const;
  // Whether few enough multiprocessors are left over.
  bool can_keep_columns(const DeviceProps& device) const;
  // Rows of tiles that run side by side with all their columns, or with kSwap all rows: the pixels
  // are then read from memory once.
  std::int64_t band(const DeviceProps& device) const;
};

// Tiles worth trying that the loader can cut.
std::vector<GemmTile> pixel_tiles(const PixelShape& shape);
// The tile with results that leave by the copy engine, where they can and that may be quicker.
std::optional<GemmTile> with_boxes(const PixelShape& shape, GemmTile tile);
// Whether the end of a tile takes about as long as its products.
bool is_short(const PixelShape& shape, const GemmTile& tile);

// How shared memory is used where windows stay in it.
struct WindowStages {
  std::int64_t rows = 0;  // of a window; 0: there are none
  int windows = 0, filters = 0;
  bool resident = false;  // all filters stay where they are
  unsigned bytes = 0;
  int side = 0;           // groups side by side (PackedGroups); 0: no bundles
  double efficiency = 1;  // of the products
};
WindowStages window_stages(const PackedGroups& group_pack, const GemmTile& tile);
WindowStages window_stages(const PixelShape& shape, const GemmTile& tile,
                           const DeviceProps& device);

}  // namespace ashlar::cuda
