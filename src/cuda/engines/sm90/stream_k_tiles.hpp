// Stream-K tiles (kernels/sm90/stream_k.cuh): workspace, arguments and flag reset.
#pragma once

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

struct StreamKTiles {
  GemmTile tile;
  TileWaves waves;
  std::int64_t tile_stages;  // K-blocks of a tile

  std::int64_t part_bytes() const;  // workspace of partials: one tile of accumulators per CTA
  std::int64_t flag_count() const;
  std::int64_t scratch_bytes() const;
  // No-ops without stream-K.
  void add_arguments(ScratchLayout& scratch_layout, Arguments& arguments) const;
  void add_reset(std::vector<LaunchDesign>& launches) const;  // inserts a launch before the last
};

}  // namespace ashlar::cuda
