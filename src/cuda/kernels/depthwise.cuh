// Depthwise convolution: one filter of kWindowD x kWindowH x kWindowW per channel; unused spatial
// axes have window and extent 1. A thread computes a tile of kTileH x kTileW results of kVector
// channels, held in registers as a whole (..._tiles.cuh) or rolling down its rows (..._rows.cuh),
// so that a source element is read once and multiplied by all taps that use it.
// kColumns: NHWC, tensors indexed as [n, d, h, w, c]; a CTA has kAcross channel packets times
// tiles. Otherwise NCHW, [n, c, d, h, w], with a channel per CTA and kVector = 1.
// Element offsets have 64 bits, so that compile-time offsets within a tile become immediates of
// load instructions; tiles are counted with 32 bits.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/packets.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/reduce.cuh"
#include "lib/rows.cuh"

// The channels of a thread and the tiles it computes: first, first + step, ...
struct ThreadWork {
  bool works;
  int lane, row;
  int channel;
  int first, step;

  __device__ static ThreadWork of_thread(const Args& args) {
    ThreadWork work;
    work.row = threadIdx.x / kAcross;
    work.lane = threadIdx.x % kAcross;
    work.channel = ((int)blockIdx.y * kAcross + work.lane) * kVector;
    const int rows = kThreads / kAcross;
    work.works = work.row < rows && work.channel < (int)args.channels;
    work.first = (int)blockIdx.x * rows + work.row;
    work.step = (int)gridDim.x * rows;
    return work;
  }
};

// The tile of results that starts at (d, h, w) of image n.
struct Tile {
  int n, d, h, w;

  __device__ Tile(const Args& args, int number) {
    const auto take = [&](int64 extent, int64 magic) {
      const int above = divide(number, magic, extent), here = number - above * (int)extent;
      number = above;
      return here;
    };
    w = take(args.tiles_w, args.magic_tiles_w) * kTileW;
    h = take(args.tiles_h, args.magic_tiles_h) * kTileH;
    d = take(args.to_d, args.magic_to_d);
    n = number;
  }
};

__device__ inline void locate(int n, int channel, int z, int y, int x, Index (&at)[5]) {
  at[0] = n;
  at[kColumns ? 4 : 1] = channel;
  at[kColumns ? 1 : 2] = z;
  at[kColumns ? 2 : 3] = y;
  at[kColumns ? 3 : 4] = x;
}
__device__ inline bool is_within(int i, int extent) { return (unsigned)i < (unsigned)extent; }

// The index of a tap in the stored filter: true convolution flips the filter.
__device__ inline int stored_tap(int tap) {
  return kFlip ? kWindowD * kWindowH * kWindowW - 1 - tap : tap;
}

// Loads kLength pixels of row `y` of a height x width plane from column `x` on, zero out of bounds.
// `Tensor` loads packets of channels, as Bits or Numbers.
template <class Tensor, int kLength>
__device__ inline void load_line(const Args& args, int64 height, int64 width, int n, int channel,
                                 int z, int y, int x, typename Tensor::Packet (&line)[kLength]) {
  Index at[5];
  locate(n, channel, z, y, x, at);
  if (is_within(y, (int)height) && x >= 0 && x + kLength <= (int)width) {
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      Tensor::load(args, at, line[i]);
      ++at[kColumns ? 3 : 4];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      line[i] = {};
      if (is_within(y, (int)height) && is_within(x + i, (int)width))
        Tensor::load(args, at, line[i]);
      ++at[kColumns ? 3 : 4];
    }
  }
}
template <class Tensor, int kLength>
__device__ inline void widen_line(const typename Tensor::Packet (&line)[kLength],
                                  R (&to)[kLength][kVector]) {
#pragma unroll
  for (int i = 0; i < kLength; ++i) Tensor::widen(line[i], to[i]);
}
