// Convolutions of few channels and filters: windows hold all channels, filters stay. Groups are
// multiplied side by side with their neighbours (kernels/sm90/mainloop_groups.cuh).
#pragma once

#include <optional>

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/sm90/pixel_shape.hpp"

namespace ashlar::cuda {

struct PackedGroups {
  int side = 0;         // groups of a bundle: 128 bytes of channels; without groups 1
  int group_bytes = 0;  // of the channels of one; of the only one filled up to 32, 64 or 128
  int columns = 0;      // of one, filled up likewise
  int taps = 0;
  int window_rows = 0;           // pixels that a tile's windows see
  int windows = 0, filters = 0;  // stages in shared memory
  unsigned shared_bytes = 0;

  int row_bytes() const { return side * group_bytes; }
  // Tiles worth trying for a shape with long lines (PixelShape::with_windows) or whose pixels are
  // rows of a matrix; none where its channels and filters do not fit.
  static std::vector<GemmTile> tiles(const PixelShape& shape);
  // How a tile uses shared memory; nothing where there is not enough.
  static std::optional<PackedGroups> of(const PixelShape& shape, const GemmTile& tile,
                                        const DeviceProps& device);

  // The shape whose groups are the bundles.
  PixelShape packed_shape(const PixelShape& shape) const;
  TensorMapForm filter_map(const PixelShape& shape) const;
  // What the kernel's head has beside the constants of all products.
  std::string constants(const PixelShape& shape) const;
  // Share of the matrix units' rate: a product of few columns waits for shared memory.
  double efficiency(const GemmTile& tile) const;
};

}  // namespace ashlar::cuda
