// Blocking of small-group convolutions by NCHW planes.
#include "cpu/conv/conv_planes.hpp"

namespace ashlar::cpu {

bool planes_fit(const std::vector<ConvPhase>& phases, std::int64_t parts) {
  constexpr std::int64_t kWidest = 65536;  // columns from the first tap to the last
  for (const ConvPhase& phase : phases) {
    const TapGrid grid(phase);
    if ((grid.taps - 1) * grid.gap > kWidest) return false;
  }
  return lines_fit(phases, parts);
}

PlaneBlocking::PlaneBlocking(const ConvPhase& phase, const TapGrid& grid, std::int64_t parts,
                             std::int64_t tile) {
  const std::int64_t scale = phase.scale[2];
  pixels = std::clamp<std::int64_t>(phase.extent[2], 1, kMaxPlanePixels);
  result_line = round_up(pixels, tile);
  segment = result_line + (grid.taps - 1) * grid.gap / scale;
  row = segment * scale;
  for (std::int64_t s = 0; s < grid.taps; ++s)
    offsets.push_back(s * grid.gap % scale * segment + s * grid.gap / scale);
  lines = std::clamp<std::int64_t>(phase.extent[1], 1, kMaxPlaneLines);
  const auto too_much = [&] {
    const std::int64_t rows = copied_rows(grid, phase);
    return lines * parts * grid.terms() > kMaxLinePointers || rows > kMaxLinePointers ||
           parts * rows * row > kCopiedBlock;
  };
  while (lines > 1 && too_much()) lines = divide_up(lines, 2);
}

PlaneBlock PlaneBlocking::block(const ConvPhase& phase, std::int64_t groups,
                                std::int64_t number) const {
  const auto take = [&](std::int64_t count) {
    const std::int64_t part = number % count;
    number /= count;
    return part;
  };
  const std::int64_t chunk = take(divide_up(phase.extent[2], pixels)) * pixels;
  const std::int64_t y = take(divide_up(phase.extent[1], lines)) * lines;
  const std::int64_t z = take(phase.extent[0]), group = take(groups);
  return {.image = number,
          .group = group,
          .at = {number, z, y},
          .lines = std::min(lines, phase.extent[1] - y),
          .pixels = {chunk, std::min(pixels, phase.extent[2] - chunk)}};
}

}  // namespace ashlar::cpu
