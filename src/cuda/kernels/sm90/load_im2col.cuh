// TMA loads of an implicit-GEMM convolution: TMA im2col gathers the pixels of a filter tap from the
// image, TMA loads the filters of the tap. Requires sm90/tile_scheduler_conv.cuh and the generated
// header, which defines
//   kPixelAxes    spatial axes of the image; 0: pixels are the rows of a matrix (pointwise)
//   kSwap         GEMM rows are filters and columns are pixels (results with contiguous pixels);
//                 otherwise rows are pixels and columns are filters
//   kColumnsContiguous  filters are contiguous along the GEMM's columns, not along K (backward)
//   kWhole        the epilogue's axes are (pixels, channels), or with kSwap (images, channels,
//                 pixels); otherwise all axes of the image are separate
//   kUsedColumns  columns of a tile that can be results, without kSwap
//   kWindowRows   not 0: rows of the halo window, which is loaded once for all taps of a plane
//                 (mainloop_halo.cuh)
//   kPaddedLines  lines and planes of the pixel numbering include the padding between them
//   kInPlanes     whether taps are in several planes
//   kGroupsPerTile  not 0: groups packed into one tile (mainloop_groups.cuh)
//   kComputesPixels  producer warps compute the pixels (sm90/prologue_pixels.cuh): no im2col maps
// args.map_pixels0... are the maps of the phases: (channel, w, h, d, image) or (channel, pixel);
// args.map_filters has (contiguous, tap, other). args.columns and .depth (K) are per group;
// args.taps[] packs 16 bits each: the tap's index in the filter, its offsets w, h, d from the begin
// of the window.
#include "lib/ptx_tma.cuh"

static const int kFilterTile = kSwap ? kTileM : kTileN;
static const int kStageBytesA =
    (kWindowRows > 0 ? kWindowRows : kTileM) * kBlockK * kElementBytes;
static const int kStageBytesB = kTileN * kBlockK * kElementBytes;
static const int kBoxColumns = 128 / kElementBytes;  // of a box with contiguous columns
// compute windows; the fourth warp issues the TMA loads of filters
static const int kComputingWarps = 3;

struct Pixel {
  int image, d, h, w;
};

// Coordinates of pixel `pixel` of a phase, numbered along w, h, d, then images.
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

// The CTAs of a cluster have different pixels and the same filters: each loads 1 / kCluster of the
// filters and multicasts it.
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

// K order: all taps of one block of channels, then the next block, so that the pixels of later taps
// hit in L2.
template <class A>
__device__ inline void load_stage(const A& args, const WorkTile& work, int block, uint8* a,
                                  uint8* b, Mbarrier* barrier) {
  const int64 taps = phase_word(args, work.phase, kTaps);
  const int above = divide(block, phase_word(args, work.phase, kMagicTaps), taps);
  const int64 tap =
      args.taps[phase_word(args, work.phase, kFirstTap) + block - above * (int)taps];
  const int depth = above * kBlockK;
  if constexpr (!kComputesPixels)
    load_pixel_tile(args, work, kSwap ? b : a, barrier, work.group * (int)args.depth + depth, tap);
  load_filter_tile(args, work, kSwap ? a : b, barrier, depth, (int)(tap & 0xffff));
}

// The two halves of load_stage for mainloop_halo.cuh: the halo window (one block of channels of all
// pixels that the tile's filter windows cover in a plane), and the filters of one K-block.
__device__ inline int plane_count(const Args& args, int phase) {
  return kInPlanes ? (int)phase_word(args, phase, kPlanes) : 1;
}
// Window `number` of a work tile: its block of channels, and its plane encoded as a tap.
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
// Rows by which a tap is offset within the window.
__device__ inline int window_row(int64 tap) { return (int)(tap >> 16 & 0x7fffffff); }

// Whether a pixel is a result, not padding between lines or images.
__device__ inline bool exists(const Args& args, int phase, const Pixel& pixel) {
  return !kPaddedLines ||
         (pixel.w < (int)phase_word(args, phase, kResultW) &&
          pixel.h < (int)phase_word(args, phase, kResultH) &&
          pixel.d < (int)phase_word(args, phase, kResultD));
}

// Coordinates of a pixel in the result: axis 0 is the image, spatial axes begin at kFirst.
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

// The same where the result's pixels are one merged axis, or a few.
__device__ inline void place_whole_pixel(const Args& args, int phase, int number,
                                         Index (&at)[kRank]) {
  const Pixel pixel = pixel_of(args, phase, number);
  const int d = (int)phase_word(args, phase, kResultD), h = (int)phase_word(args, phase, kResultH),
            w = (int)phase_word(args, phase, kResultW);
  locate_row(args, (Index)(((pixel.image * d + pixel.d) * h + pixel.h) * w + pixel.w), at);
  if (!exists(args, phase, pixel)) at[0] = -1;
}

// Coordinates of a row of the GEMM in the result; the last coordinate holds the column. A negative
// first coordinate: no such pixel.
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

// Position of a work tile in the result, in the row and column numbers of place_row. Rows and
// columns from the ends on do not exist.
struct Bounds {
  Index first_row, row_end, first_column, column_end;
};
__device__ inline Bounds bounds_of(const Args& args, const WorkTile& work) {
  const Index channel = (Index)work.group * (Index)args.columns;
  Index channel_end = channel + (Index)args.columns;
  // The last pack may hold fewer groups.
  if constexpr (kGroupsPerTile > 0) channel_end = min(channel_end, (Index)args.all_columns);
  const Index pixel_end = (Index)phase_word(args, work.phase, kPixels);
  if constexpr (kSwap)
    return {channel, channel_end, (Index)work.n, pixel_end};
  else
    return {0, pixel_end, channel + work.n, channel_end};
}

// Epilogue of 16 rows of accumulators; their first column is work.n.
template <int kHalf, class StagingBuffer, class Accum, class Tails>
__device__ inline void epilogue_tile_rows(const Args& args, const WorkTile& work,
                                          const StagingBuffer& staging, const Accum (&accum)[kHalf],
                                          int row, Tails& tails) {
  const Bounds bounds = bounds_of(args, work);
  const int kUsed = kSwap || kUsedColumns > 2 * kHalf ? 2 * kHalf : kUsedColumns;
  finish_rows<2 * kHalf, kVector, !kSwap && kPaddedLines, kUsed>(
      args, staging, accum, bounds.first_row + row, bounds.row_end, bounds.first_column,
      bounds.column_end, [&](Index r, Index(&at)[kRank]) { place_row(args, work, r, at); }, tails);
}
