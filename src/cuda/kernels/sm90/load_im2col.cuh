// Tiles of a convolution: pixels that the copy engine gathers from an image tap by tap, and the
// filters of a tap. Comes after a kernel's head and sm90/tile_scheduler_conv.cuh. The head has
//   kPixelAxes    spatial axes of the image; 0 where pixels lie as the rows of a matrix
//   kSwap         rows of the product are filters, its columns pixels (results with contiguous
//                 pixels); else rows are pixels, columns filters
//   kColumnsContiguous   filters have the product's columns contiguous, not its depth (backward)
//   kWhole        the epilogue's axes are (pixels, channels), or with kSwap (images, channels,
//                 pixels); else all axes of an image stand for themselves
//   kUsedColumns  of a tile that results may have, but with kSwap
//   kWindowRows   not 0: pixels are loaded once for all taps of a plane, so many rows
//                 (mainloop_halo.cuh)
//   kPaddedLines    lines and planes are longer than the results' by what lies between them, for
//                 several taps
//   kInPlanes     whether taps are in several planes
//   kGroupsPerTile         not 0: groups side by side that are taken as one (mainloop_groups.cuh)
//   kComputesPixels  pixels are not asked for but computed (sm90/prologue_pixels.cuh): no maps
// args.map_pixels0... are the maps of the phases, (channel, w, h, d, image) or (channel, pixel);
// args.map_filters has (contiguous, tap, other). args.columns and .depth are of a group;
// args.taps[] holds the tap's place in the filter and its offsets from the window's begin, 16 bits
// each: filter, w, h, d.
#include "lib/ptx_tma.cuh"

static const int kFilterTile = kSwap ? kTileM : kTileN;
static const int kStageBytesA =
    (kWindowRows > 0 ? kWindowRows : kTileM) * kBlockK * kElementBytes;
static const int kStageBytesB = kTileN * kBlockK * kElementBytes;
static const int kBoxColumns = 128 / kElementBytes;  // of a box with contiguous columns
static const int kComputingWarps = 3;  // of windows; another one asks for filters

struct Pixel {
  int image, d, h, w;
};

// Pixel number `pixel` of a phase, which runs along w, h, d and images.
__device__ inline Pixel pixel_of(const Args& args, int phase, int pixel) {
  const auto split = [&](int number, int extent, int magic, int& above) {
    const int64 divisor = phase_word(args, phase, extent);
    above = divide(number, phase_word(args, phase, magic), divisor);
    return number - above * (int)divisor;
  };
  Pixel result;
  result.w = split(pixel, kExtentW, kMagicW, pixel);
  result.h = split(pixel, kExtentH, kMagicH, pixel);
  result.d = split(pixel, kExtentD, kMagicD, result.image);
  return result;
}

template <class A>
__device__ inline void load_pixel_tile(const A& args, const WorkTile& work, uint8* to,
                                       Mbarrier* barrier, int channel, int64 tap) {
  const int first = kSwap ? work.n : work.m;
  const TensorMap& map = (&args.map_pixels0)[kPhases == 1 ? 0 : phase_word(args, work.phase, kMap)];
  if constexpr (kPixelAxes == 0) {
    load_box<2>(to, map, barrier, {channel, first});
  } else {
    const Pixel pixel = pixel_of(args, work.phase, first);
    const int w = pixel.w * (int)args.step_w + (int)phase_word(args, work.phase, kLowerW),
              h = pixel.h * (int)args.step_h + (int)phase_word(args, work.phase, kLowerH),
              d = pixel.d * (int)args.step_d + (int)phase_word(args, work.phase, kLowerD);
    const int tap_w = (int)(tap >> 16 & 0xffff), tap_h = (int)(tap >> 32 & 0xffff),
              tap_d = (int)(tap >> 48 & 0xffff);
    if constexpr (kPixelAxes == 1)
      load_im2col<3>(to, map, barrier, {channel, w, pixel.image}, {tap_w});
    if constexpr (kPixelAxes == 2)
      load_im2col<4>(to, map, barrier, {channel, w, h, pixel.image}, {tap_w, tap_h});
    if constexpr (kPixelAxes == 3)
      load_im2col<5>(to, map, barrier, {channel, w, h, d, pixel.image}, {tap_w, tap_h, tap_d});
  }
}

// Every block of a cluster has pixels of its own, and all share the filters: each loads its part
// for all of them.
__device__ inline void load_filter_tile(const Args& args, const WorkTile& work, uint8* to,
                                        Mbarrier* barrier, int depth, int tap) {
  const int kPart = kFilterTile / kCluster, part = block_of_cluster() * kPart;
  const int column = (kSwap ? work.m : work.n) + part;
  const auto load = [&](uint8* box, const int(&at)[3]) {
    if constexpr (kCluster > 1)
      load_box_multicast(box, args.map_filters, barrier, at, (uint16)((1 << kCluster) - 1));
    else
      load_box(box, args.map_filters, barrier, at);
  };
  to += part * kBlockK * kElementBytes;
  if constexpr (kColumnsContiguous) {
#pragma unroll
    for (int c = 0; c < kPart; c += kBoxColumns) {
      const int at[3] = {column + c, tap, work.group * (int)args.depth + depth};
      load(to + c * kBlockK * kElementBytes, at);
    }
  } else {
    const int at[3] = {depth, tap, work.group * (int)args.columns + column};
    load(to, at);
  }
}

// Blocks of depth run through the taps of a block of channels, whose pixels are in the L2 cache
// then.
template <class A>
__device__ inline void load_stage(const A& args, const WorkTile& work, int block, uint8* a, uint8* b,
                                  Mbarrier* barrier) {
  const int64 taps = phase_word(args, work.phase, kTaps);
  const int above = divide(block, phase_word(args, work.phase, kMagicTaps), taps);
  const int64 tap =
      args.taps[phase_word(args, work.phase, kFirstTap) + block - above * (int)taps];
  const int depth = above * kBlockK;
  if constexpr (!kComputesPixels)
    load_pixel_tile(args, work, kSwap ? b : a, barrier, work.group * (int)args.depth + depth, tap);
  load_filter_tile(args, work, kSwap ? a : b, barrier, depth, (int)(tap & 0xffff));
}

// The same in two: a block of channels of all pixels that a tile's windows see of a plane, and the
// filters of a block of depth.
__device__ inline int plane_count(const Args& args, int phase) {
  return kInPlanes ? (int)phase_word(args, phase, kPlanes) : 1;
}
// Window number `number` of a piece of work: its block of channels, and its plane as a tap.
struct Window {
  int block;
  int64 tap;
};
__device__ inline Window window_of(const Args& args, const WorkTile& work, int number) {
  Window window = {number, 0};
  if constexpr (kInPlanes) {
    const int planes = plane_count(args, work.phase);
    const int taps = (int)phase_word(args, work.phase, kTaps) / planes;
    window.block = number / planes;
    const int64 first = args.taps[phase_word(args, work.phase, kFirstTap) +
                                  (number - window.block * planes) * taps];
    window.tap = first & (int64)0xffff << 48;
  }
  return window;
}
template <class A>
__device__ inline void load_window(const A& args, const WorkTile& work, int number, uint8* to,
                                   Mbarrier* barrier) {
  const Window window = window_of(args, work, number);
  load_pixel_tile(args, work, to, barrier, work.group * (int)args.depth + window.block * kBlockK,
                  window.tap);
}
__device__ inline void load_filters(const Args& args, const WorkTile& work, int block, uint8* to,
                                    Mbarrier* barrier) {
  const int64 taps = phase_word(args, work.phase, kTaps);
  const int above = divide(block, phase_word(args, work.phase, kMagicTaps), taps);
  const int64 tap =
      args.taps[phase_word(args, work.phase, kFirstTap) + block - above * (int)taps];
  load_filter_tile(args, work, to, barrier, above * kBlockK, (int)(tap & 0xffff));
}
// How many rows further a tap's pixels are in their plane.
__device__ inline int window_row(int64 tap) { return (int)(tap >> 16 & 0x7fffffff); }

// Whether a pixel is one of the results, not one of those between lines and images.
__device__ inline bool exists(const Args& args, int phase, const Pixel& pixel) {
  return !kPaddedLines ||
         (pixel.w < (int)phase_word(args, phase, kResultW) &&
          pixel.h < (int)phase_word(args, phase, kResultH) &&
          pixel.d < (int)phase_word(args, phase, kResultD));
}

// The coordinates of a pixel among the results, whose axis 0 is the image and whose spatial ones
// begin with kFirst.
template <int kFirst>
__device__ inline void place_pixel(const Args& args, int phase, int number, Index (&at)[kRank]) {
  const Pixel pixel = pixel_of(args, phase, number);
  const int kSpatial = kRank - 2;
  if (!exists(args, phase, pixel)) {
    at[0] = -1;
    return;
  }
  at[0] = pixel.image;
  if constexpr (kSpatial > 2)
    at[kFirst] = pixel.d * (Index)args.spread_d + (Index)phase_word(args, phase, kFirstD);
  if constexpr (kSpatial > 1)
    at[kFirst + kSpatial - 2] =
        pixel.h * (Index)args.spread_h + (Index)phase_word(args, phase, kFirstH);
  at[kFirst + kSpatial - 1] =
      pixel.w * (Index)args.spread_w + (Index)phase_word(args, phase, kFirstW);
}

// The same where they are one axis, or a few.
__device__ inline void place_whole_pixel(const Args& args, int phase, int number,
                                         Index (&at)[kRank]) {
  const Pixel pixel = pixel_of(args, phase, number);
  const int d = (int)phase_word(args, phase, kResultD), h = (int)phase_word(args, phase, kResultH),
            w = (int)phase_word(args, phase, kResultW);
  locate_row(args, (Index)(((pixel.image * d + pixel.d) * h + pixel.h) * w + pixel.w), at);
  if (!exists(args, phase, pixel)) at[0] = -1;
}

// The coordinates of a row of the product's results; the column is in the last of them. A first one
// below 0: there is no such pixel.
__device__ inline void place_row(const Args& args, const WorkTile& work, Index row,
                                 Index (&at)[kRank]) {
  if constexpr (kSwap) {
    const int pixel = (int)at[kRank - 1];
    at[1] = row;
    if constexpr (kWhole) {
      at[0] = divide(pixel, args.magic_image_pixels, args.image_pixels);
      at[2] = pixel - at[0] * (Index)args.image_pixels;
    } else {
      place_pixel<2>(args, work.phase, pixel, at);
    }
  } else if constexpr (kWhole && !kPaddedLines) {
    locate_row(args, row, at);
  } else if constexpr (kWhole) {
    place_whole_pixel(args, work.phase, (int)row, at);
  } else {
    place_pixel<1>(args, work.phase, (int)row, at);
  }
}

// Where a piece of work stands among the results, in numbers of rows and columns that place_row
// takes. Rows and columns of the tile from these ends on are not there.
struct Bounds {
  Index first_row, row_end, first_column, column_end;
};
__device__ inline Bounds bounds_of(const Args& args, const WorkTile& work) {
  const Index channel = (Index)work.group * (Index)args.columns;
  Index channel_end = channel + (Index)args.columns;
  // The last groups side by side may be fewer.
  if constexpr (kGroupsPerTile > 0) channel_end = min(channel_end, (Index)args.all_columns);
  const Index pixel_end = (Index)phase_word(args, work.phase, kPixels);
  if constexpr (kSwap)
    return {channel, channel_end, (Index)work.n, pixel_end};
  else
    return {0, pixel_end, channel + work.n, channel_end};
}

// 16 rows of sums whose columns begin with work.n.
template <int kHalf, class StagingBuffer, class Accum, class Tails>
__device__ inline void epilogue_tile_rows(const Args& args, const WorkTile& work, const StagingBuffer& staging,
                                        const Accum (&accum)[kHalf], int row, Tails& tails) {
  const Bounds bounds = bounds_of(args, work);
  const int kUsed = kSwap || kUsedColumns > 2 * kHalf ? 2 * kHalf : kUsedColumns;
  finish_rows<2 * kHalf, kVector, !kSwap && kPaddedLines, kUsed>(
      args, staging, accum, bounds.first_row + row, bounds.row_end, bounds.first_column,
      bounds.column_end, [&](Index r, Index(&at)[kRank]) { place_row(args, work, r, at); }, tails);
}
