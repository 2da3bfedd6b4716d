// Blocking of indirect-GEMM convolutions: blocks of pixels, whose source rows are channels-last in
// memory (in place or staged), and tiles of MR pixels within a block (see
// kernels/igemm_micro_kernel.hpp). No im2col: taps adjacent along a source row are one run of
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/conv/conv_geometry.hpp"
#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

// Strides of the source in elements.
struct TileStrides {
  std::int64_t image = 0;
  Spatial axis{};
};

// Input of the blocking of a phase.
struct TileProblem {
  std::int64_t channels = 0;     // source channels read at once
  Spatial source{};              // extents
  bool is_in_memory = false;     // the source is f32 with contiguous channels
  TileStrides distances;         // of the source, if in memory
  std::int64_t planes = 1;       // independent problems of this shape, besides the images
  std::int64_t block_bytes = 0;  // L2 budget of a block, ...
  std::int64_t pixel_bytes = 0;  // ... for its source and for this much per pixel
  std::int64_t threads = 1;      // threads that share the blocks
  // The filter: divided among threads instead of read by all of them if it is larger than a block
  // and has enough panels.
  std::int64_t filter_bytes = 0, panels = 1;
};

// A box of pixels. Several images only if whole, several rows only if whole; so the pixels of a
// smaller block are a prefix of a larger one's.
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
  // Source coordinate of entry `index` of a staged block along an axis.
  std::int64_t source_at(const TileBlock& block, std::size_t axis, std::int64_t index) const {
    return block.start[axis] * grid.scale[axis] + low[axis] + index * staged_step(axis);
  }
  // A single tap along an axis: only the columns or rows it reads are staged.
  bool is_compact(std::size_t axis) const { return reach[axis] == 0; }
  std::int64_t staged_step(std::size_t axis) const {
    return is_compact(axis) ? grid.scale[axis] : 1;
  }
  std::int64_t staged_extent(std::size_t axis, std::int64_t pixels) const {
    return is_compact(axis) ? pixels : (pixels - 1) * grid.scale[axis] + reach[axis] + 1;
  }
  std::int64_t staged_elements() const { return in_place ? 0 : most.images * at.image; }

  ConvPhase grid;             // taps sorted by the source offset they read
  Spatial low{}, reach{};     // minimum of the taps' shifts, and maximum minus minimum
  std::int64_t channels = 0;  // reduced
  std::int64_t segments = 0;  // runs of adjacent taps
  std::int64_t run = 1;       // taps per segment
  bool in_place = false;
  TileBlock most;                             // extents of a full block
  TileStrides at;                             // strides of the block's source
  std::vector<std::int64_t> segment_offsets;  // relative to a pixel's first tap
  std::vector<std::int64_t> pixel_offsets;    // source offsets of the pixels of a block
  std::int64_t splits = 1;                    // thread splits of the panels of a block

 private:
  void sort_taps();
  void choose_blocking(const TileProblem& problem);
  void place(const TileProblem& problem);
};

// A slice of K whose rows of a panel stay in L2 while the tiles of a block pass: whole segments, or
// part of one.
struct TileSlice {
  std::int64_t segment, segments;
  std::int64_t start, k;  // within each segment
};

std::vector<TileSlice> slice_k(const TilePhase& phase, std::int64_t panel_columns,
                               std::int64_t most_bytes);

// Offsets of the pixels of a full block in a result with these strides.
std::vector<std::int64_t> result_offsets(const TilePhase& phase, const TileStrides& distances);

}  // namespace ashlar::cpu
