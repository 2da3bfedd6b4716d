#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

constexpr TileCalibration kTable[] = {
#include "cuda/engines/tile_calibration.inc"
};

std::string_view core_of(std::string_view engine) {
  return engine.ends_with("_sm90") ? "_sm90" : "_sm80";
}

}  // namespace

const TileCalibration& tile_calibration(std::string_view engine, DType operands, int tile_m,
                                        int tile_n, int variant) {
  // Best match: rows of the engine itself come before all others, then the kernel's variant, the
  // operands, the tile. The tile is compared first, because most rows are of other tiles.
  const std::string_view core = core_of(engine);
  const TileCalibration* best = kTable;
  int best_fit = -1;
  for (const TileCalibration& row : kTable) {
    const bool same_tile = row.tile_m == tile_m && row.tile_n == tile_n;
    if (!same_tile && row.tile_m != 0) continue;
    const bool own = row.engine == engine;
    if (!own && row.engine != core) continue;
    const int same_variant = row.variant == variant                   ? 2
                             : row.variant == variant % kWithTmaStore ? 1
                                                                      : 0;
    const int fit = 16 * (own ? 1 : 0) + 4 * same_variant + 2 * (row.operands == operands ? 1 : 0) +
                    (same_tile ? 1 : 0);
    if (fit <= best_fit) continue;
    best_fit = fit;
    best = &row;
  }
  return *best;
}

}  // namespace ashlar::cuda
