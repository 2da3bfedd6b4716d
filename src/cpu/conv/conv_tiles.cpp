// Blocking and addressing of indirect-GEMM convolutions.
#include "cpu/conv/conv_tiles.hpp"

#include <algorithm>

namespace ashlar::cpu {

namespace {

constexpr std::size_t kRow = 1, kColumn = 2;  // axes of Spatial
constexpr std::int64_t kFloatBytes = 4;

// Calls visit(image, row, column) for the pixels of a block in order.
template <class Visit>
void for_block_pixels(const TileBlock& block, Visit&& visit) {
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t row = 0; row < block.extent[kRow]; ++row)
      for (std::int64_t column = 0; column < block.extent[kColumn]; ++column)
        visit(image, row, column);
}

bool reads_padding(const TilePhase& phase, const TileProblem& problem) {
  for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
    if (phase.low[axis] < 0 || (phase.grid.extent[axis] - 1) * phase.grid.scale[axis] +
                                       phase.low[axis] + phase.reach[axis] >=
                                   problem.source[axis])
      return true;
  return false;
}

}  // namespace

TilePhase::TilePhase(ConvPhase phase, const TileProblem& problem)
    : grid(std::move(phase)), channels(problem.channels) {
  sort_taps();
  in_place = problem.is_in_memory && !reads_padding(*this, problem);
  choose_blocking(problem);
  place(problem);
}

void TilePhase::sort_taps() {
  const auto& taps = grid.taps;
  std::sort(grid.taps.begin(), grid.taps.end(),
            [](const ConvTap& a, const ConvTap& b) { return a.shift < b.shift; });
  if (taps.empty()) return;
  low = taps.front().shift;
  Spatial high = low;
  for (const ConvTap& tap : taps)
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
      low[axis] = std::min(low[axis], tap.shift[axis]);
      high[axis] = std::max(high[axis], tap.shift[axis]);
    }
  for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) reach[axis] = high[axis] - low[axis];
}

void TilePhase::choose_blocking(const TileProblem& problem) {
  const auto bytes_of = [&](std::int64_t rows, std::int64_t columns) {
    const std::int64_t read =
        (reach[0] + 1) * staged_extent(kRow, rows) * staged_extent(kColumn, columns) * channels;
    return kFloatBytes * read + problem.pixel_bytes * rows * columns;
  };
  const auto fits = [&](std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t kMaxPixels = 4096;
    return bytes_of(rows, columns) <= problem.block_bytes && rows * columns <= kMaxPixels;
  };
  // Number of even parts of `extent` that makes a block small enough.
  const auto parts = [](std::int64_t extent, auto&& small_enough) {
    std::int64_t count = 1;
    while (count < extent && !small_enough(divide_up(extent, count))) ++count;
    return count;
  };
  const Spatial& whole = grid.extent;
  most.extent = {1, 1, whole[kColumn]};
  const std::int64_t column_parts =
      parts(whole[kColumn], [&](std::int64_t columns) { return fits(1, columns); });
  if (column_parts > 1) {
    most.extent[kColumn] = divide_up(whole[kColumn], column_parts);
    return;
  }
  std::int64_t row_parts =
      parts(whole[kRow], [&](std::int64_t rows) { return fits(rows, whole[kColumn]); });
  const std::int64_t planes = grid.images * whole[0] * problem.planes;
  const std::int64_t wanted = divide_up(problem.threads, planes);  // parts per plane
  if (wanted > 1 && row_parts % wanted != 0) {
    // Splits the larger operand; the smaller one is read twice.
    if (problem.filter_bytes > bytes_of(whole[kRow], whole[kColumn]) && problem.panels >= wanted &&
        row_parts < wanted)
      splits = divide_up(wanted, row_parts);
    else
      row_parts = std::min(whole[kRow], round_up(row_parts, wanted));
  }
  most.extent[kRow] = divide_up(whole[kRow], row_parts);
  if (row_parts > 1 || whole[0] > 1) return;
  // Groups small images, as long as every thread has its own blocks.
  const std::int64_t image_bytes = std::max<std::int64_t>(bytes_of(whole[kRow], whole[kColumn]), 1);
  const std::int64_t together = std::clamp<std::int64_t>(
      std::min(problem.block_bytes / image_bytes, grid.images * problem.planes / problem.threads),
      1, grid.images);
  most.images = divide_up(grid.images, divide_up(grid.images, together));
}

void TilePhase::place(const TileProblem& problem) {
  if (in_place) {
    at = problem.distances;
  } else {
    constexpr std::int64_t kLine = 16;
    at.axis[kColumn] = channels;
    at.axis[kRow] = round_up(staged_extent(kColumn, most.extent[kColumn]) * channels, kLine);
    at.axis[0] = staged_extent(kRow, most.extent[kRow]) * at.axis[kRow];
    at.image = staged_extent(0, 1) * at.axis[0];
  }
  // Taps along a source row are one run of memory if its pixels are contiguous.
  const auto& taps = grid.taps;
  const auto count = static_cast<std::int64_t>(taps.size());
  if (at.axis[kColumn] == channels) {
    const auto is_next = [&](std::int64_t tap) {
      Spatial expected = taps[static_cast<std::size_t>(tap - 1)].shift;
      ++expected[kColumn];
      return taps[static_cast<std::size_t>(tap)].shift == expected;
    };
    while (run < count && is_next(run)) ++run;
    const auto breaks_run = [&](std::int64_t tap) { return tap % run != 0 && !is_next(tap); };
    for (std::int64_t tap = 1; tap < count; ++tap)
      if (count % run != 0 || breaks_run(tap)) run = 1;
  }
  segments = count / run;
  for (std::int64_t s = 0; s < segments; ++s) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      offset += (taps[static_cast<std::size_t>(s * run)].shift[axis] - low[axis]) * at.axis[axis];
    segment_offsets.push_back(offset);
  }
  const auto step = [&](std::size_t axis) {
    return at.axis[axis] * (in_place ? grid.scale[axis] : grid.scale[axis] / staged_step(axis));
  };
  for_block_pixels(most, [&](std::int64_t image, std::int64_t row, std::int64_t column) {
    pixel_offsets.push_back(image * at.image + row * step(kRow) + column * step(kColumn));
  });
}

std::int64_t TilePhase::block_count() const {
  return divide_up(grid.images, most.images) * grid.extent[0] *
         divide_up(grid.extent[kRow], most.extent[kRow]) *
         divide_up(grid.extent[kColumn], most.extent[kColumn]);
}

TileBlock TilePhase::block(std::int64_t number) const {
  TileBlock block = most;
  // Even parts: with small images a thread has only one or two blocks.
  for (const std::size_t axis : {kColumn, kRow}) {
    const std::int64_t count = divide_up(grid.extent[axis], most.extent[axis]);
    const std::int64_t part = number % count;
    block.start[axis] = grid.extent[axis] * part / count;
    block.extent[axis] = grid.extent[axis] * (part + 1) / count - block.start[axis];
    number /= count;
  }
  block.start[0] = number % grid.extent[0];
  const std::int64_t count = divide_up(grid.images, most.images), part = number / grid.extent[0];
  block.image = grid.images * part / count;
  block.images = grid.images * (part + 1) / count - block.image;
  return block;
}

std::vector<TileSlice> slice_k(const TilePhase& phase, std::int64_t panel_columns,
                               std::int64_t most_bytes) {
  std::vector<TileSlice> slices;
  const std::int64_t segments = phase.segments;
  const std::int64_t segment_k = phase.run * phase.channels;
  const std::int64_t row_bytes = panel_columns * kFloatBytes;
  const auto parts_of = [&](std::int64_t rows) {
    return rows * row_bytes <= most_bytes ? 1 : divide_up(2 * rows * row_bytes, most_bytes);
  };
  const std::int64_t parts = parts_of(phase.k());
  if (parts <= segments || segments == 0) {
    for (std::int64_t i = 0; i < std::max<std::int64_t>(std::min(parts, segments), 1); ++i) {
      const std::int64_t first = segments * i / parts;
      slices.push_back({first, segments * (i + 1) / parts - first, 0, segment_k});
    }
    return slices;
  }
  const std::int64_t chunks = divide_up(parts, segments);
  for (std::int64_t segment = 0; segment < segments; ++segment)
    for (std::int64_t i = 0; i < chunks; ++i) {
      const std::int64_t first = segment_k * i / chunks;
      slices.push_back({segment, 1, first, segment_k * (i + 1) / chunks - first});
    }
  return slices;
}

std::vector<std::int64_t> result_offsets(const TilePhase& phase, const TileStrides& distances) {
  std::vector<std::int64_t> offsets;
  for_block_pixels(phase.most, [&](std::int64_t image, std::int64_t row, std::int64_t column) {
    offsets.push_back(image * distances.image + row * phase.grid.step[kRow] * distances.axis[kRow] +
                      column * phase.grid.step[kColumn] * distances.axis[kColumn]);
  });
  return offsets;
}

}  // namespace ashlar::cpu
