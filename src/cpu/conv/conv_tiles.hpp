// Forward and backward-data convolutions cut into blocks of pixels, whose rows of the source lie
// channels-last in memory (where they are, or staged), and tiles of a few pixels within a block
// (see kernels/igemm_micro_kernel.hpp). Nothing is unfolded: taps that are neighbours along a row
// of the source are one run of its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/conv/conv_geometry.hpp"
#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

// Distances in elements from one position of the source to the next.
struct TileStrides {
  std::int64_t image = 0;
  Spatial axis{};
};

// What a convolution's phase is cut from.
struct TileProblem {
  std::int64_t channels = 0;     // of the source, those that are read at once
  Spatial source{};              // extents
  bool is_in_memory = false;     // the source is there as floats, channels side by side
  TileStrides distances;         // of the source, if so
  std::int64_t planes = 1;       // problems of this shape that run at once, besides the images
  std::int64_t block_bytes = 0;  // what a block may take of L2, ...
  std::int64_t pixel_bytes = 0;  // ... for what it reads and for this much per pixel
  std::int64_t threads = 1;      // that blocks are for
  // What every block is multiplied with: shared out among threads rather than read by all of them
  // where it is more than a block and has as many panels.
  std::int64_t filter_bytes = 0, panels = 1;
};

// A box of pixels. More than one image only in whole, more than one row only in whole rows; so the
// pixels of a smaller block are the first of a larger one's.
struct TileBlock {
  std::int64_t image = 0, images = 1;
  Spatial start{};
  Spatial extent{};  // extent[0] is 1
  std::int64_t pixels() const { return images * extent[1] * extent[2]; }
};

struct TilePhase {
  TilePhase(ConvPhase phase, const TileProblem& problem);

  std::int64_t k() const { return static_cast<std::int64_t>(grid.taps.size()) * channels; }
  std::int64_t block_count() const;
  TileBlock block(std::int64_t number) const;
  // Position of the source that entry `index` of a staged block stands for, along an axis.
  std::int64_t source_at(const TileBlock& block, std::size_t axis, std::int64_t index) const {
    return block.start[axis] * grid.scale[axis] + low[axis] + index * staged_step(axis);
  }
  // One tap along an axis: only what it reads is staged.
  bool is_compact(std::size_t axis) const { return reach[axis] == 0; }
  std::int64_t staged_step(std::size_t axis) const {
    return is_compact(axis) ? grid.scale[axis] : 1;
  }
  std::int64_t staged_extent(std::size_t axis, std::int64_t pixels) const {
    return is_compact(axis) ? pixels : (pixels - 1) * grid.scale[axis] + reach[axis] + 1;
  }
  std::int64_t staged_elements() const { return in_place ? 0 : most.images * at.image; }

  ConvPhase grid;             // taps in the order of what they read
  Spatial low{}, reach{};     // of the taps' shifts: the least, and how far the greatest is
  std::int64_t channels = 0;  // summed over
  std::int64_t segments = 0;  // runs of taps
  std::int64_t run = 1;       // taps to a segment
  bool in_place = false;
  TileBlock most;                             // the extents of a full block
  TileStrides at;                             // from position to position of what a block reads
  std::vector<std::int64_t> segment_offsets;  // from the place of a pixel's first tap
  std::vector<std::int64_t> pixel_offsets;    // of the pixels of a block
  std::int64_t splits = 1;                    // parts the panels of a block are shared out in

 private:
  void sort_taps();
  void choose_blocking(const TileProblem& problem);
  void place(const TileProblem& problem);
};

// A part of the depth whose rows of a panel stay in L2 while the tiles of a block pass: whole
// segments, or a part of one.
struct TileSlice {
  std::int64_t segment, segments;
  std::int64_t start, k;  // within each segment
};

std::vector<TileSlice> slice_k(const TilePhase& phase, std::int64_t panel_columns,
                               std::int64_t most_bytes);

// Offsets of the pixels of a full block in a result with these distances.
std::vector<std::int64_t> result_offsets(const TilePhase& phase, const TileStrides& distances);

}  // namespace ashlar::cpu
