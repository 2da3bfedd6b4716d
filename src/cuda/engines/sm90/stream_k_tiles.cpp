#include "cuda/engines/sm90/stream_k_tiles.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kSumBytes = 4, kFlagBytes = 4;
constexpr std::int64_t kFlagRows = 16;  // rows per warp
constexpr unsigned kResetThreads = 256;

}  // namespace

std::int64_t StreamKTiles::part_bytes() const {
  return std::int64_t{waves.grid} * tile.m * tile.n * kSumBytes;
}
std::int64_t StreamKTiles::flag_count() const {
  return std::int64_t{waves.grid} * tile.m / kFlagRows;
}
std::int64_t StreamKTiles::scratch_bytes() const {
  return tile.streams ? part_bytes() + flag_count() * kFlagBytes : 0;
}

void StreamKTiles::add_arguments(ScratchLayout& scratch_layout, Arguments& arguments) const {
  if (!tile.streams) return;
  const std::int64_t ranges = waves.grid / waves.cluster, stages = waves.split * tile_stages;
  arguments.number("tile_stages", tile_stages);
  arguments.number("range_stages", stages / ranges);
  arguments.number("longer_ranges", stages % ranges);
  arguments.number("flag_count", flag_count());
  arguments.scratch("parts", scratch_layout.add("parts", part_bytes()));
  arguments.scratch("flags", scratch_layout.add("flags", flag_count() * kFlagBytes));
}

void StreamKTiles::add_reset(std::vector<LaunchDesign>& launches) const {
  if (!tile.streams) return;
  LaunchDesign& product = launches.back();
  product.cooperative = true;
  LaunchDesign reset;
  reset.source = product.source;
  reset.function = "reset_flags";
  reset.threads = kResetThreads;
  reset.arguments = product.arguments;
  launches.insert(launches.end() - 1, std::move(reset));
}

}  // namespace ashlar::cuda
