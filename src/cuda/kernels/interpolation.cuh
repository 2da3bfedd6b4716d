// Nearest and linear interpolation, forward. A thread computes kVector contiguous results: channels
// of a pixel (kColumns: NHWC, [n, d, h, w, c]) or pixels of a row (NCHW, [n, c, d, h, w]). Extents
// are compile-time constants, so that divisions by them are cheap.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// The position of result `o` of an axis between two elements of x: x[at] has weight 1 - share,
// x[next] has weight share.
struct Between {
  int at, next;
  R share;
};
template <int kFrom, int kTo> __device__ inline Between between(int o) {
  if constexpr (kLinear == 0) {
    const int at = min(o * kFrom / kTo, kFrom - 1);
    return {at, at, (R)0};
  } else {
    const R last = (R)(kFrom - 1);
    R source = (R)0;
    if (kAlignCorners == 0)
      source = ((R)o + (R)0.5) * ((R)kFrom / (R)kTo) - (R)0.5;
    else if (kTo > 1)
      source = (R)o * (last / (R)(kTo > 1 ? kTo - 1 : 1));
    source = source < (R)0 ? (R)0 : source > last ? last : source;
    const int at = min((int)source, kFrom - 1);
    return {at, min(at + 1, kFrom - 1), source - (R)at};
  }
}

__device__ inline void locate(Index n, Index channel, int z, int y, int x, Index (&at)[5]) {
  at[0] = n;
  at[kColumns ? 4 : 1] = channel;
  at[kColumns ? 1 : 2] = z;
  at[kColumns ? 2 : 3] = y;
  at[kColumns ? 3 : 4] = x;
}

// The weighted sum over the corners around a result, for kCount channels.
template <int kCount>
__device__ inline void interpolate(const Args& args, Index n, Index channel, const Between& d,
                                   const Between& h, const Between& w, R (&sums)[kCount]) {
  constexpr int kD = kLinear && kFromD > 1 ? 2 : 1, kH = kLinear && kFromH > 1 ? 2 : 1,
                kW = kLinear && kFromW > 1 ? 2 : 1;
  fill((R)0, sums);
#pragma unroll
  for (int corner = 0; corner < kD * kH * kW; ++corner) {
    const int i = corner / (kH * kW), j = corner / kW % kH, k = corner % kW;
    Index at[5];
    R x[kCount];
    locate(n, channel, i ? d.next : d.at, j ? h.next : h.at, k ? w.next : w.at, at);
    x_of<kCount>(args, at, x);
    const R weight = (i ? d.share : (R)1 - d.share) * (j ? h.share : (R)1 - h.share) *
                     (k ? w.share : (R)1 - w.share);
#pragma unroll
    for (int v = 0; v < kCount; ++v) sums[v] = kLinear ? sums[v] + weight * x[v] : x[v];
  }
}

template <int kCount>
__device__ inline void make_results(const Args& args, int64 packets, int64 magic_packets) {
  Index rest = (Index)blockIdx.x * kThreads + threadIdx.x;
  const auto take = [&](int64 extent, int64 magic) {
    const Index above = divide(rest, magic, extent), here = rest - above * (Index)extent;
    rest = above;
    return here;
  };
  Index channel = 0, w = 0;
  if (kColumns) {
    channel = take(packets, magic_packets) * kCount;
    w = take(kToW, args.magic_to_w);
  } else {
    w = take(packets, magic_packets) * kCount;
  }
  const int oh = (int)take(kToH, args.magic_to_h), od = (int)take(kToD, args.magic_to_d);
  if (!kColumns) channel = take(args.channels, args.magic_channels);
  const Index n = rest;
  if (n >= (Index)args.images) return;
  const Between d = between<kFromD, kToD>(od), h = between<kFromH, kToH>(oh);
  R values[kCount];
  if constexpr (kColumns) {
    interpolate<kCount>(args, n, channel, d, h, between<kFromW, kToW>((int)w), values);
  } else {
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
      R one[1];
      interpolate<1>(args, n, channel, d, h, between<kFromW, kToW>((int)w + v), one);
      values[v] = one[0];
    }
  }
  Index at[5];
  locate(n, channel, od, oh, (int)w, at);
  epilogue<kCount>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    interpolation(const __grid_constant__ Args args) {
  make_results<kVector>(args, args.packets, args.magic_packets);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    interpolation_elements(const __grid_constant__ Args args) {
  make_results<1>(args, args.singles, args.magic_singles);
}
