// The last rounds of a product's tiles, where all blocks share them by ranges of their stages
// (kernels/sm90/stream_k.cuh): what such a kernel needs beside what all have.
#pragma once

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

struct StreamKTiles {
  GemmTile tile;
  TileWaves waves;
  std::int64_t tile_stages;  // the blocks of depth of a tile

  std::int64_t part_bytes() const;  // the sums that blocks leave for others, each a tile of them
  std::int64_t flag_count() const;
  std::int64_t scratch_bytes() const;
  // None of these does anything where nothing is streamed.
  void add_arguments(ScratchLayout& scratch_layout, Arguments& arguments) const;
  void add_reset(std::vector<LaunchDesign>& launches) const;  // before the last of them
};

}  // namespace ashlar::cuda
