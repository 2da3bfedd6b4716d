// Max and average pooling over windows of kWindowD x kWindowH x kWindowW; unused spatial axes have
// window and extent 1. A thread computes a tile of kTileH x kTileW results, so that elements which
// their windows share are read once.
// kColumns: NHWC, tensors indexed as [n, d, h, w, c], and every result is kCount channels.
// Otherwise NCHW, [n, c, d, h, w], kCount = 1, and the results of a tile's row are contiguous.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/exponential.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/rows.cuh"

// Argmax positions within windows are ints in registers. They fit the types they are stored in.
__device__ inline int64 narrow(i64, int position) { return position; }
__device__ inline int narrow(i32, int position) { return position; }
__device__ inline uint32 narrow(u32, int position) { return (uint32)position; }
__device__ inline int8 narrow(i8, int position) { return (int8)position; }
__device__ inline uint8 narrow(u8, int position) { return (uint8)position; }
__device__ inline uint8 narrow(u4, int position) { return (uint8)position; }

template <int kCount, class D>
__device__ inline void load_positions(D d, const void* data, int64 index, int (&to)[kCount]) {
  if constexpr (IsPacked<D>::value) {
    load_row(d, data, index, to);
  } else if constexpr (kCount == 1) {
    to[0] = (int)((const typename D::Word*)data)[index];
  } else {
    typedef Vector<kCount, typename D::Word> Elements;
    Elements u;
    const auto* from = (const typename Elements::Piece*)((const typename D::Word*)data + index);
#pragma unroll
    for (int i = 0; i < Elements::kPieces; ++i) u.pieces[i] = load_read_only(from + i);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = (int)u.words[i];
  }
}

template <int kCount, class D>
__device__ inline void store_positions(D d, void* data, int64 index, const int (&from)[kCount]) {
  store_row(d, data, index, from);
}
// 4-bit positions, up to eight per access.
template <int kCount>
__device__ inline void load_positions(u4, const void* data, int64 index, int (&to)[kCount]) {
  const uint8* bytes = (const uint8*)data + index / 2;
  if constexpr (kCount == 1) {
    to[0] = *bytes >> (int)(index % 2) * 4 & 15;
  } else {
    const uint32 word = load_read_only((const typename Packet<kCount / 2>::Type*)bytes);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = (int)(word >> i * 4 & 15u);
  }
}
template <int kCount>
__device__ inline void store_positions(u4 d, void* data, int64 index, const int (&from)[kCount]) {
  if constexpr (kCount == 1) {
    store_element(d, data, index, from[0]);
  } else {
    uint32 word = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) word |= (uint32)from[i] << i * 4;
    typedef typename Packet<kCount / 2>::Type Piece;
    store_piece((Piece*)((uint8*)data + index / 2), (Piece)word);
  }
}

// The tile of a thread: results from (d, h, w) on, from `channel` on, of image n.
struct Tile {
  bool exists;
  Index n, channel;
  int d, h, w;

  // Args to_d, to_h, to_w are the extents of the results.
  template <int kCount> __device__ static Tile of_thread(const Args& args) {
    Index rest = (Index)blockIdx.x * kThreads + threadIdx.x;
    const auto take = [&](int64 extent, int64 magic) {
      const Index above = divide(rest, magic, extent), here = rest - above * (Index)extent;
      rest = above;
      return here;
    };
    Tile tile;
    if (kColumns && kCount == kVector) tile.channel = take(args.packets, args.magic_packets);
    if (kColumns && kCount != kVector) tile.channel = take(args.channels, args.magic_channels);
    tile.channel *= kCount;
    tile.w = (int)take(args.tiles_w, args.magic_tiles_w) * kTileW;
    tile.h = (int)take(args.tiles_h, args.magic_tiles_h) * kTileH;
    tile.d = (int)take(args.to_d, args.magic_to_d);
    if (!kColumns) tile.channel = take(args.channels, args.magic_channels);
    tile.n = rest;
    tile.exists = rest < (Index)args.images;
    return tile;
  }
  __device__ void locate(int z, int y, int x, Index (&at)[5]) const {
    at[0] = n;
    at[kColumns ? 4 : 1] = channel;
    at[kColumns ? 1 : 2] = z;
    at[kColumns ? 2 : 3] = y;
    at[kColumns ? 3 : 4] = x;
  }
};

__device__ inline int clamped(int i, int extent) { return min(max(i, 0), extent - 1); }
__device__ inline bool is_within(int i, int extent) { return (unsigned)i < (unsigned)extent; }
// Elements of x within the window of result `o` along an axis.
__device__ inline int covered(int o, int stride, int padding, int window, int extent) {
  const int begin = o * stride - padding;
  return min(begin + window, extent) - max(begin, 0);
}
__device__ inline int covered(const Args& args, int d, int h, int w) {
  return covered(d, kStrideD, kPaddingD, kWindowD, (int)args.x_d) *
         covered(h, kStrideH, kPaddingH, kWindowH, (int)args.x_h) *
         covered(w, kStrideW, kPaddingW, kWindowW, (int)args.x_w);
}
