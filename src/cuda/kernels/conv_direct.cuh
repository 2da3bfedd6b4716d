// Direct convolution on tensor cores for few channels: MMA operands are gathered from a patch of
// the source in shared memory, without an im2col matrix.
//
// A CTA computes a tile of kTileH x kTileW results of an image for kGroups channel groups. The
// patch, kPatchH x kPatchW pixels of kPixel elements in rows of kPitch, holds the receptive field
// of the tile. The reduction of a result is divided into 16-byte units, whose offsets from the
// result's origin in the patch are the same for every result:
//   kRuns: the taps of a filter row are contiguous in the patch; a row, after kLead elements of
//   weight 0, is kUnitsOfRow units (3 or 4 channels)
//   else: the channels of a tap within one group are kUnitsOfTap units
// Backward-data is the same reduction over dy, with kPhaseH x kPhaseW results, the phases of the
// stride, per pixel of dy.
// A group here may be several merged groups of the operation, with zero weights between them.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_ldmatrix.cuh"
#include "lib/ptx_mma.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"

typedef Element::Word Word;
static const int kUnit = 16 / (int)sizeof(Word);
static const bool kIsShort = sizeof(Word) == 2;
static const int kTilePixels = kTileH * kTileW;

// Elements from a result's origin in the patch to unit u of its reduction.
__device__ constexpr int unit_offset(int u) {
  if (u >= kUnits) u = kUnits - 1;
  if (kRuns) return u / kUnitsOfRow * (kDilationH * kPitch) + u % kUnitsOfRow * kUnit;
  const int tap = u / kUnitsOfTap;
  return tap / kWindowW * (kDilationH * kPitch) + tap % kWindowW * (kDilationW * kPixel) +
         u % kUnitsOfTap * kUnit;
}
// Elements from the start of the patch to the origin of result `m` of the tile.
__device__ inline int place_offset(int m) {
  if (m >= kTilePixels) m = 0;
  return kShift + m / kTileW * (kStepH * kPitch) + m % kTileW * (kStepW * kPixel);
}

// Finds tap and channel (within the group) of element `e` of unit `u`; false: none, its weight is
// 0.
__device__ inline bool find_element(int u, int e, int& tap_h, int& tap_w, int& channel) {
  if (kRuns) {
    const int at = u % kUnitsOfRow * kUnit + e - kLead;
    tap_h = u / kUnitsOfRow;
    tap_w = at / kPixel;
    channel = at - tap_w * kPixel;
    return u < kUnits && at >= 0 && tap_w < kWindowW && channel < kGroupChannels;
  }
  const int tap = u / kUnitsOfTap;
  tap_h = tap / kWindowW;
  tap_w = tap % kWindowW;
  channel = u % kUnitsOfTap * kUnit + e;
  return u < kUnits && channel < kGroupChannels;
}

__device__ inline bool is_within(int i, int extent) { return (unsigned)i < (unsigned)extent; }
// Coordinates in [n, h, w, c] or [n, c, h, w].
__device__ inline void locate(int n, int h, int w, int channel, Index (&at)[4]) {
  at[0] = n;
  at[kChannelsLast ? 1 : 2] = h;
  at[kChannelsLast ? 2 : 3] = w;
  at[kChannelsLast ? 3 : 1] = channel;
}

// The tile of results that starts at (h, w) of image n.
struct Tile {
  int n, h, w;

  __device__ Tile(const Args& args, int number) {
    const int row = divide(number, args.magic_tiles_w, args.tiles_w);
    w = (number - row * (int)args.tiles_w) * kTileW;
    n = divide(row, args.magic_tiles_h, args.tiles_h);
    h = (row - n * (int)args.tiles_h) * kTileH;
  }
};

// f32 is stored unconverted; it becomes tf32 in registers.
__device__ inline Word to_word(float x) {
  if constexpr (kIsShort)
    return narrow(Element(), x);
  else
    return x;
}

// Registers of an MMA operand. prepare() converts f32 to tf32: rounded, or (kSplits) split into a
// sum of two tf32 values, `words` and `rest`.
template <int kCount>
struct Operand {
  uint32 words[kCount], rest[kCount];

  __device__ void prepare() {
    if (kIsShort) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float x = __uint_as_float(words[i]);
      if (kSplits) {
        words[i] = to_tf32(x);
        rest[i] = to_tf32(x - __uint_as_float(words[i]));
      } else {
        // Tensor cores truncate the lower 13 bits. Scaled by 1 + 2^-11, a value is off by at most
        // 2^-11 of its magnitude in either direction, and values of 11 significant bits are exact.
        words[i] = __float_as_uint(x * (1 + 0x1p-11f));
      }
    }
  }
};

// 16 x 8 accumulators, four per lane. kSplits: tensor cores truncate sums that f32 addition would
// round. promote() therefore moves them every few steps to accumulators that are added in f32; the
// products with `rest` are small enough to stay.
struct Accumulators {
  float d[4] = {}, rest[4] = {}, promoted[4] = {};

  __device__ void add(const Operand<4>& a, const Operand<2>& b) {
    multiply_add(Element(), d, a.words, b.words);
    if (kSplits) {
      multiply_add(Element(), rest, a.rest, b.words);
      multiply_add(Element(), rest, a.words, b.rest);
    }
  }
  __device__ void promote() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      promoted[i] += d[i];
      d[i] = 0;
    }
  }
  __device__ float operator[](int i) const {
    return kSplits ? promoted[i] + (d[i] + rest[i]) : d[i];
  }
};
static const int kPromoteInterval = 4;  // steps between promotions

// Stores values as elements in shared memory at an address aligned to their size.
template <int kCount>
__device__ inline void put_elements(Word* to, const float (&values)[kCount]) {
  Vector<kCount, Word> packed;
#pragma unroll
  for (int i = 0; i < kCount; ++i) packed.words[i] = to_word(values[i]);
  auto* pieces = (typename Vector<kCount, Word>::Piece*)to;
#pragma unroll
  for (int i = 0; i < Vector<kCount, Word>::kPieces; ++i) pieces[i] = packed.pieces[i];
}
// Copies kCount elements from global to shared memory, by cp.async if they are 4 bytes or more.
// Both addresses are aligned to their size.
template <int kCount>
__device__ inline void copy_elements(Word* to, const Word* from) {
  if constexpr (kCount * sizeof(Word) >= 4) {
    cp_async<kCount * (int)sizeof(Word)>(to, from);
  } else {
    float values[kCount];
    load_row(Element(), from, 0, values);
    put_elements(to, values);
  }
}

// Stages one packet. `Tensor` provides kCount (elements per access), kBefore (pixels that an
// aligned access may start before the tile, for NCHW), kCopies (elements need no conversion),
// pointer(args, at) and load(args, at, values).
template <class Tensor>
__device__ inline void stage_elements(const Args& args, const Index (&at)[4], bool exists,
                                      Word* to) {
  if (exists && Tensor::kCopies) {
    copy_elements<Tensor::kCount>(to, Tensor::pointer(args, at));
  } else {
    R values[Tensor::kCount];
    fill((R)0, values);
    if (exists) Tensor::load(args, at, values);
    put_elements(to, values);
  }
}

// Stages kHeight x kWidth pixels from (h, w) on and kChannels channels from `channel` on, zero out
// of bounds: pixels of kPixelOf elements in rows of kPitchOf.
template <class Tensor, int kHeight, int kWidth, int kChannels, int kPixelOf, int kPitchOf>
__device__ inline void stage_pixels(const Args& args, int n, int h, int w, int channel,
                                    int height, int width, int channels, Word* to) {
  const int kCount = Tensor::kCount, kPackets = kChannels / kCount;
  Index at[4];
  if (kChannelsLast) {
    // Threads cover the packets of a pixel, times several pixels.
    const int kAbreast = kThreads / kPackets > 0 ? kThreads / kPackets : 1;
    const int kPieces = (kPackets + kThreads - 1) / kThreads;
    for (int piece = 0; piece < kPieces; ++piece) {
      const int packet = threadIdx.x % kPackets + piece * kThreads, c = packet * kCount;
      if ((int)threadIdx.x >= kAbreast * kPackets || packet >= kPackets) break;
#pragma unroll 4
      for (int pixel = threadIdx.x / kPackets; pixel < kHeight * kWidth; pixel += kAbreast) {
        const int y = pixel / kWidth, x = pixel % kWidth;
        locate(n, h + y, w + x, channel + c, at);
        const bool exists = is_within(h + y, height) && is_within(w + x, width) &&
                            channel + c < channels;
        stage_elements<Tensor>(args, at, exists, to + y * kPitchOf + x * kPixelOf + c);
      }
    }
  } else {
    // kCount pixels of a row from a multiple of kCount on, which may lie outside the patch.
    const int before = Tensor::kBefore, kAcross = (before + kWidth + kCount - 1) / kCount;
#pragma unroll 2
    for (int i = threadIdx.x; i < kChannels * kHeight * kAcross; i += kThreads) {
      const int x = i % kAcross * kCount - before, y = i / kAcross % kHeight,
                c = i / (kAcross * kHeight);
      R values[kCount];
      fill((R)0, values);
      locate(n, h + y, w + x, channel + c, at);
      if (is_within(h + y, height) && is_within(w + x, width) && channel + c < channels)
        Tensor::load(args, at, values);
      Word* slot = to + y * kPitchOf + x * kPixelOf + c;
#pragma unroll
      for (int j = 0; j < kCount; ++j)
        if (is_within(x + j, kWidth)) slot[j * kPixelOf] = to_word(values[j]);
    }
  }
}

// kSpans: copies contiguous spans of image rows unconverted, from element kFirstElement relative to
// the tile's first result on. kSpan divides all offsets and extents.
__device__ inline void stage_spans(const Args& args, const Tile& tile, int height, int width,
                                   Word* to) {
  const int kPackets = kPitch / kSpan;
  Index at[4];
#pragma unroll 4
  for (int i = threadIdx.x; i < kPatchH * kPackets; i += kThreads) {
    const int y = i / kPackets, e = i % kPackets * kSpan;
    const int h = tile.h * kStepH + kFirstH + y;
    const int element = tile.w * kStepW * kPixel + kFirstElement + e;
    Word* slot = to + y * kPitch + e;
    locate(tile.n, h, 0, 0, at);
    if (is_within(h, height) && is_within(element, width * kPixel))
      copy_elements<kSpan>(slot, Source::pointer(args, at) + element);
    else {
      const float zeros[kSpan] = {};
      put_elements(slot, zeros);
    }
  }
}

// Stages the patch of a tile, for channels of groups from `group` on.
__device__ inline void stage_patch(const Args& args, const Tile& tile, int group, Word* to) {
  const int height = (int)args.from_h, width = (int)args.from_w;
  if constexpr (kSpans)
    stage_spans(args, tile, height, width, to);
  else
    stage_pixels<Source, kPatchH, kPatchW, kPatchChannels, kPixel, kPitch>(
        args, tile.n, tile.h * kStepH + kFirstH, tile.w * kStepW + kFirstW,
        group * kGroupChannels, height, width, (int)args.from_channels, to);
}
