// Convolutions of grouped or few channels: several groups are packed into one tile, halo windows
// hold all their channels, filters stay in shared memory (kernels/sm90/mainloop_groups.cuh).
#pragma once

#include <optional>

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/sm90/pixel_shape.hpp"

namespace ashlar::cuda {

struct PackedGroups {
  int side = 0;         // groups per pack: 128 bytes of channels; 1 without groups
  int group_bytes = 0;  // channels of one group; a single group is padded to 32, 64 or 128
  int columns = 0;      // of one group, padded likewise
  int taps = 0;
  int window_rows = 0;           // pixels of a tile's halo window
  int windows = 0, filters = 0;  // stages in shared memory
  unsigned shared_bytes = 0;

  int row_bytes() const { return side * group_bytes; }
  // Candidate tiles for a shape with padded lines (PixelShape::with_windows) or whose pixels are
  // rows of a matrix; none where its channels and filters do not fit.
  static std::vector<GemmTile> tiles(const PixelShape& shape);
  // Shared-memory use of a tile; nothing where it does not fit.
  static std::optional<PackedGroups> of(const PixelShape& shape, const GemmTile& tile,
                                        const DeviceProps& device);

  // The shape whose groups are the packs.
  PixelShape packed_shape(const PixelShape& shape) const;
  TensorMapForm filter_map(const PixelShape& shape) const;
  // Constants of the generated header in addition to those of all GEMMs.
  std::string constants(const PixelShape& shape) const;
  // Share of the tensor-core rate: a wgmma of few columns is limited by shared memory.
  double efficiency(const GemmTile& tile) const;
};

}  // namespace ashlar::cuda
