#include "cuda/engines/sm90/streamed_tiles.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kSumBytes = 4, kFlagBytes = 4;
constexpr std::int64_t kFlagRows = 16;  // those of a warp
constexpr unsigned kResetThreads = 256;

}  // namespace

std::int64_t StreamedTiles::part_bytes() const {
  return std::int64_t{rounds.grid} * tile.m * tile.n * kSumBytes;
}
std::int64_t StreamedTiles::flag_count() const {
  return std::int64_t{rounds.grid} * tile.m / kFlagRows;
}
std::int64_t StreamedTiles::scratch_bytes() const {
  return tile.streams ? part_bytes() + flag_count() * kFlagBytes : 0;
}

void StreamedTiles::add_arguments(ScratchBook& book, Arguments& arguments) const {
  if (!tile.streams) return;
  const std::int64_t ranges = rounds.grid / rounds.cluster, stages = rounds.split * tile_stages;
  arguments.number("tile_stages", tile_stages);
  arguments.number("range_stages", stages / ranges);
  arguments.number("longer_ranges", stages % ranges);
  arguments.number("flag_count", flag_count());
  arguments.scratch("parts", book.add("parts", part_bytes()));
  arguments.scratch("flags", book.add("flags", flag_count() * kFlagBytes));
}

void StreamedTiles::add_reset(std::vector<LaunchDesign>& launches) const {
  if (!tile.streams) return;
  LaunchDesign& product = launches.back();
  product.together = true;
  LaunchDesign reset;
  reset.source = product.source;
  reset.function = "reset_flags";
  reset.threads = kResetThreads;
  reset.arguments = product.arguments;
  launches.insert(launches.end() - 1, std::move(reset));
}

}  // namespace ashlar::cuda
