// Blocking of small-group convolutions by lines of pixels.
#include "cpu/conv/conv_lines.hpp"

#include <map>
#include <utility>

namespace ashlar::cpu {

TapGrid::TapGrid(const ConvPhase& phase) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int64_t, Spatial>> by_line;
  for (const ConvTap& tap : phase.taps)
    by_line[{tap.shift[0], tap.shift[1]}][tap.shift[2]] = tap.stored;
  if (by_line.empty()) return;
  const auto& columns = by_line.begin()->second;
  taps = static_cast<std::int64_t>(columns.size());
  shift = columns.begin()->first;
  if (taps > 1) gap = std::next(columns.begin())->first - shift;
  first_y = last_y = by_line.begin()->first.second;
  for (const auto& [at, line] : by_line) {
    if (lines.empty() || lines.back().z != at.first) ++depths;
    lines.push_back({at.first, at.second, depths - 1});
    first_y = std::min(first_y, at.second);
    last_y = std::max(last_y, at.second);
    for (const auto& [column, position] : line) stored.push_back(position);
  }
}

bool lines_fit(const std::vector<ConvPhase>& phases, std::int64_t pointers) {
  for (const ConvPhase& phase : phases) {
    const TapGrid grid(phase);
    if (grid.terms() * pointers > kMaxLinePointers || copied_lines(grid, 1, 1) > kMaxLinePointers)
      return false;
  }
  return true;
}

LineBlocking choose_line_blocking(std::int64_t lanes, std::int64_t channels, std::int64_t line,
                                  bool copies, std::int64_t direct_lines,
                                  const std::vector<TapGrid>& grids, std::int64_t scale,
                                  std::int64_t column_scale) {
  constexpr std::int64_t kChunk = kMaxCopied / 2, kFewPixels = 56;
  LineBlocking blocking{.lanes = lanes, .channels = channels};
  blocking.chunk = round_up(std::max<std::int64_t>(channels, 1), lanes);
  blocking.pixels = std::max<std::int64_t>(line, 1);
  blocking.lines = direct_lines;
  std::int64_t terms = 1;
  for (const TapGrid& grid : grids) terms = std::max(terms, grid.terms());
  const auto max_copied = [&](std::int64_t lines) {
    std::int64_t most = 1;
    for (const TapGrid& grid : grids) most = std::max(most, copied_lines(grid, lines, scale));
    return most;
  };
  if (copies) {
    if (channels >= 2 * kChunk) blocking.chunk = kChunk;
    const std::int64_t max_pixels = kCopiedLine / (blocking.widest_copy() * column_scale);
    blocking.pixels = std::min(blocking.pixels, std::max(kFewPixels, max_pixels));
    blocking.lines = kMaxLines;
    while (blocking.lines > 1 &&
           max_copied(blocking.lines) * blocking.pixels * column_scale * blocking.widest_copy() >
               kCopiedBlock)
      blocking.lines /= 2;
  }
  while (blocking.lines > 1 && (blocking.lines * terms > kMaxLinePointers ||
                                max_copied(blocking.lines) > kMaxLinePointers))
    blocking.lines /= 2;
  return blocking;
}

}  // namespace ashlar::cpu
