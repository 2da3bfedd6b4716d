#include "cuda/engines/sm90/pixel_tails.hpp"

namespace ashlar::cuda {

GemmTails pixel_tails(const Region& region, const PixelTiling& tiling, std::int64_t blocks) {
  const GemmTile& tile = tiling.tile;
  TailParts parts{.warps = blocks * tile.consumers * 4};
  for (const ImplicitGemm::Phase& phase : tiling.shape.product.phases) {
    parts.rows += tiling.tiles_m(phase) * tile.cluster * tile.tile_warpgroups();
    parts.columns += tiling.tiles_n(phase);
  }
  return {region, tiling.shape.axes(region.epilogue.space.rank()), parts};
}

}  // namespace ashlar::cuda
