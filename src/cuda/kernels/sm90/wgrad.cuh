// Wgrad (backward-filter convolution) as a GEMM whose K runs over pixels: dw[k][tap][c] = sum over
// pixels of dy[pixel][k] * x[pixel + tap][c]. This file: work decomposition and TMA loads. Requires
// the generated header, which defines the instruction `Mma`; wgrad_mma.cuh or wgrad_transposed.cuh
// follow.
//
// A stage holds kSegments segments of images: kRows rows of kDyWidth pixels of dy, and the pixels
// of x that all taps of the tile cover, kXRows rows of kXWidth.
//
// A tile is kDyBoxes boxes of 64 filters by kXBoxes boxes of 64 channels by kTapRows rows of
// kTapsAcross taps. Where kGroupsPerTile groups are packed into a box, only products of a group's
// filters with its own channels are stored. CTAs split K (the pixels): each stores partials to the
// workspace, and the next launch adds them.
#include "lib/divide.cuh"
#include "lib/pipeline.cuh"
#include "lib/ptx_memory.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

static const int kThreads = (kConsumers + 1) * 128;
static const int kStartRegisters = 65536 / kThreads / 8 * 8;
static const int kConsumerRegisters =
    (kStartRegisters * (kConsumers + 1) - kProducerRegisters) / kConsumers / 8 * 8 < 240
        ? (kStartRegisters * (kConsumers + 1) - kProducerRegisters) / kConsumers / 8 * 8
        : 240;

struct WorkTile {
  int group, k, c;          // first filter and channel, of the group
  int tap_d, tap_h, tap_w;  // first tap
  int split, end_split;     // workspace slot of its partials; slots up to end_split are zero-filled
  int first, count;         // stages
};

__device__ inline WorkTile work_of(const Args& args, int tile) {
  const auto next = [&](int count) {
    const int above = tile / count, own = tile - above * count;
    tile = above;
    return own;
  };
  WorkTile work;
  work.c = next((int)args.tiles_c) * kXBoxes * 64;
  work.k = next((int)args.tiles_k) * kDyBoxes * 64;
  work.tap_w = next((int)args.tap_blocks_w) * kTapsAcross;
  work.tap_h = next((int)args.tap_blocks_h) * kTapRows;
  work.tap_d = next(kWindowD);
  work.group = tile;
  return work;
}

// The CTA's share of a tile where every tile's stages are split `splits` ways. CTAs of the same
// pixels are adjacent: they read the same memory at the same time.
__device__ inline WorkTile own_work(const Args& args) {
  const int tiles = (int)args.tiles, splits = (int)args.splits;
  const int split = (int)blockIdx.x / tiles;
  const int64 stages = args.stage_count;
  WorkTile work = work_of(args, (int)blockIdx.x - split * tiles);
  work.split = split;
  work.end_split = split + 1;
  work.first = (int)(stages * split / splits);
  work.count = (int)(stages * (split + 1) / splits) - work.first;
  return work;
}

// Calls use(work) for all work of the CTA: `own`, or, stream-K, where kBlocks CTAs share the stages
// of all tiles evenly: the end of one tile, whole tiles, the begin of another. The total number of
// stages is below 2^31.
template <class Use>
__device__ inline void for_work(const Args& args, const WorkTile& own, Use use) {
  if constexpr (kBlocks == 0) {
    use(own);
  } else {
    const int64 stages = args.stage_count, all = (int)args.tiles * stages;
    const int end = (int)(all * (blockIdx.x + 1) / kBlocks);
#pragma unroll 1
    for (int at = (int)(all * blockIdx.x / kBlocks); at < end;) {
      const int tile = at / (int)stages, begin = tile * (int)stages;
      WorkTile work = work_of(args, tile);
      work.first = at - begin;
      work.count = min(end - at, (int)stages - work.first);
      // Index after the CTA that has the tile's first stage; see max_parts() on the host.
      work.split = (int)blockIdx.x - (int)(((begin + (int64)1) * kBlocks - 1) / all);
      work.end_split = work.first + work.count == (int)stages ? (int)args.splits : work.split + 1;
      use(work);
      at += work.count;
    }
  }
}

// Coordinates of the first pixel of a segment.
struct SegmentCoord {
  int w, h, d, n;

  __device__ SegmentCoord(const Args& args, int segment) {
    const auto next = [&](int count) {
      const int above = segment / count, own = segment - above * count;
      segment = above;
      return own;
    };
    w = next((int)args.segments_w) * kDyWidth;
    h = next((int)args.segments_h) * kRows;
    d = next((int)args.to_d);
    n = segment;
  }
  __device__ void advance(const Args& args) {
    w += kDyWidth;
    if (w < (int)args.to_w) return;
    w = 0;
    h += kRows;
    if (h < (int)args.to_h) return;
    h = 0;
    if (++d < (int)args.to_d) return;
    d = 0;
    ++n;
  }
};

// TMA load of a box of x or dy; coordinates beyond kRank - 2 spatial axes are 0.
__device__ inline void load(uint8* to, const TensorMap& map, Mbarrier* barrier, int channel, int w,
                            int h, int d, int n) {
  if constexpr (kRank == 3) load_box(to, map, barrier, {channel, w, n});
  if constexpr (kRank == 4) load_box(to, map, barrier, {channel, w, h, n});
  if constexpr (kRank == 5) load_box(to, map, barrier, {channel, w, h, d, n});
}
// `filter` and `channel` are relative to the tile.
__device__ inline void load_dy(const Args& args, const WorkTile& work, const SegmentCoord& coord,
                               int filter, int row, uint8* to, Mbarrier* barrier) {
  load(to, args.map_dy, barrier, work.group * (int)args.filters + work.k + filter, coord.w,
       coord.h + row, coord.d, coord.n);
}
__device__ inline void load_x(const Args& args, const WorkTile& work, const SegmentCoord& coord,
                              int channel, int row, uint8* to, Mbarrier* barrier) {
  load(to, args.map_x, barrier, work.group * (int)args.channels + work.c + channel,
       coord.w * kStrideW + work.tap_w * kDilationW - kPaddingW,
       (coord.h * kStrideH + work.tap_h * kDilationH - kPaddingH) + row * kStrideH,
       coord.d * kStrideD + work.tap_d * kDilationD - kPaddingD, coord.n);
}

// Stores the accumulators of two adjacent channels of a group, from `channel` on. With an odd
// number of channels pairs are not aligned, and the last one has no second.
__device__ inline void store_pair(float* to, int channel, float first, float second) {
  if constexpr (kGroupChannels % 2 == 0) {
    // A named 8-byte store: the compiler splits a float2.
    store_piece((uint2*)to, make_uint2(__float_as_uint(first), __float_as_uint(second)));
  } else {
    to[0] = first;
    if (channel + 1 < kGroupChannels) to[1] = second;
  }
}

// Roles of a CTA after its barriers are initialised: the warps of the last warpgroup are producers,
// produce(own) takes the CTA's work; the others call consume(work, warpgroup) for each piece of it.
template <class Produce, class Consume>
__device__ inline void run_warpgroups(const Args& args, Produce produce, Consume consume) {
  const WorkTile own = own_work(args);
  const int group = threadIdx.x / 128;
  if (group == kConsumers) {
    if constexpr (kConsumers > 1) setmaxnreg_dec<kProducerRegisters>();
    produce(own);
  } else {
    if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
    for_work(args, own, [&](const WorkTile& work) { consume(work, group); });
  }
}
