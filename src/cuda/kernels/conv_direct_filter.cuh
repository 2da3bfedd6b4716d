// Direct convolution, backward-filter. GEMM rows are elements of units (taps x channels), columns
// are filters in kTiles tiles of 8, and K runs over the pixels of dy in a tile (places). The
// kWarpsK x kWarpsM x (kGroups / kOwnGroups) warps of a CTA divide places, rows and groups; a warp
// has kOwnRows tiles of 16 rows. Every CTA and every warp along K writes split-K partials (a
// piece), which the second launch reduces in a fixed order.

static const int kLength = kIsShort ? 16 : 8;  // K of an MMA
static const int kPlaces = (kTilePixels + kLength - 1) / kLength * kLength;
static const int kRowsOfBlock = kWarpsM * kOwnRows * 16, kColumns = kTiles * 8;
static const int kGradientElements = kPlaces * kGradientPixel;
static const int kStageElements = kPatchElements + kGradientElements;

// The part of the rows, columns and groups that a CTA computes.
struct Part {
  int group, first_column, first_row;

  __device__ explicit Part(int number) {
    first_row = number % kRowParts * kRowsOfBlock;
    first_column = number / kRowParts % kParts * kColumns;
    group = number / (kRowParts * kParts) * kGroups;
  }
};

// Operand A: kOwnRows tiles of rows, gathered from the patch.
struct Rows {
  int offsets[kOwnRows][kAligned && kIsShort ? 1 : 2];

  __device__ Rows(int first_row, int lane) {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const int u = (first_row + i * 16) / kUnit, g = lane / 4;
      if constexpr (kAligned && kIsShort) {
        offsets[i][0] = unit_offset(u + lane / 8 % 2);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          offsets[i][half] = unit_offset(u + (half * 8 + g) / kUnit) + g % kUnit;
      }
    }
  }
  // Addresses in the patch of the places from `place` on.
  struct Places {
    const Word* words[kAligned && kIsShort ? 1 : kIsShort ? 4 : 2];

    __device__ Places(const Word* patch, int place, int lane) {
      if constexpr (kAligned && kIsShort) {
        words[0] = patch + place_offset(place + lane % 8 + lane / 16 * 8);
      } else if constexpr (kIsShort) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          words[i] = patch + place_offset(place + lane % 4 * 2 + i % 2 + i / 2 * 8);
      } else {
        words[0] = patch + place_offset(place + lane % 4);
        words[1] = patch + place_offset(place + lane % 4 + 4);
      }
    }
  };
  __device__ void load(const Places& places, int i, int offset, Operand<4>& a) const {
    if constexpr (kAligned && kIsShort) {
      ldmatrix<true>(a.words, places.words[0] + offset + offsets[i][0]);
    } else {
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const int at = offset + offsets[i][word % 2];
        if constexpr (kIsShort)
          a.words[word] = (uint32)places.words[word / 2 * 2][at] |
                    (uint32)places.words[word / 2 * 2 + 1][at] << 16;
        else
          a.words[word] = __float_as_uint(places.words[word / 2][at]);
      }
    }
    a.prepare();
  }
};

// Operand B: dy at the places from `place` on.
__device__ inline void load_columns(const Word* gradient, int place, int lane,
                                    Operand<2> (&b)[kTiles]) {
  if constexpr (kIsShort) {
    const Word* row = gradient + (place + lane % 16) * kGradientPixel;
#pragma unroll
    for (int t = 0; t + 1 < kTiles; t += 2) {
      uint32 four[4];
      ldmatrix<true>(four, row + (t + lane / 16) * 8);
      b[t].words[0] = four[0];
      b[t].words[1] = four[1];
      b[t + 1].words[0] = four[2];
      b[t + 1].words[1] = four[3];
    }
    if constexpr (kTiles % 2 != 0)
      ldmatrix<true>(b[kTiles - 1].words, row + (kTiles - 1) * 8);
  } else {
    const Word* row = gradient + (place + lane % 4) * kGradientPixel + lane / 4;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      b[t].words[0] = __float_as_uint(row[t * 8]);
      b[t].words[1] = __float_as_uint(row[t * 8 + 4 * kGradientPixel]);
      b[t].prepare();
    }
  }
}

__device__ inline void stage_tile(const Args& args, const Tile& tile, const Part& part, Word* to) {
  stage_patch(args, tile, part.group, to);
  stage_pixels<Gradient, kTileH, kTileW, kGradientChannels, kGradientPixel,
               kTileW * kGradientPixel>(
      args, tile.n, tile.h, tile.w, part.group * kGroupResults + part.first_column,
      (int)args.to_h, (int)args.to_w, (int)args.to_channels, to + kPatchElements);
}

// Partials are stored as [piece][part][group of the CTA][row][column].
static const int kSumsPerPart = kGroups * kRowsOfBlock * kColumns;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    conv_direct_filter(const __grid_constant__ Args args) {
  Word* stages = (Word*)shared_memory();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int own_k = warp % kWarpsK, own_m = warp / kWarpsK % kWarpsM,
            own_group = warp / (kWarpsK * kWarpsM) * kOwnGroups;
  const Part part((int)blockIdx.y);
  const Rows rows(part.first_row + own_m * kOwnRows * 16, lane);
  // Zeros the places that pad the tile to a multiple of kLength.
  const int kRest = (kPlaces - kTilePixels) * kGradientPixel;
  for (int stage = 0; stage < kPatches; ++stage)
    for (int i = threadIdx.x; i < kRest; i += kThreads)
      stages[(stage + 1) * kStageElements - kRest + i] = (Word)0;

  Accumulators sums[kOwnGroups][kOwnRows][kTiles];

  int number = blockIdx.x;
  if (number < (int)args.tiles && kPatches > 1) stage_tile(args, Tile(args, number), part, stages);
  cp_async_commit_group();
  for (int turn = 0; number < (int)args.tiles; ++turn) {
    const int next = number + (int)gridDim.x;
    const Word* stage = stages + turn % kPatches * kStageElements;
    if constexpr (kPatches > 1) {
      if (next < (int)args.tiles)
        stage_tile(args, Tile(args, next), part, stages + (turn + 1) % kPatches * kStageElements);
    } else {
      stage_tile(args, Tile(args, number), part, stages);
    }
    number = next;
    cp_async_commit_group();
    cp_async_wait_group<kPatches - 1>();
    __syncthreads();
    for (int place = own_k * kLength; place < kPlaces; place += kWarpsK * kLength) {
      const Rows::Places places(stage, place, lane);
#pragma unroll
      for (int g = 0; g < kOwnGroups; ++g) {
        Operand<2> b[kTiles];
        load_columns(stage + kPatchElements + (own_group + g) * kColumns, place, lane, b);
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
          Operand<4> a;
          rows.load(places, i, (own_group + g) * kTapChannels, a);
#pragma unroll
          for (int t = 0; t < kTiles; ++t) sums[g][i][t].add(a, b[t]);
        }
      }
      if (kSplits && place / kLength / kWarpsK % kPromoteInterval == kPromoteInterval - 1) {
#pragma unroll
        for (int i = 0; i < kOwnGroups * kOwnRows * kTiles; ++i) (&sums[0][0][0])[i].promote();
      }
    }
    __syncthreads();
  }

  const int64 piece = (int64)blockIdx.x * kWarpsK + own_k;
  float* to = (float*)args.partial + (piece * gridDim.y + blockIdx.y) * kSumsPerPart;
#pragma unroll
  for (int g = 0; g < kOwnGroups; ++g)
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i)
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = (own_m * kOwnRows + i) * 16 + half * 8 + lane / 4;
          *(float2*)(to + ((own_group + g) * kRowsOfBlock + row) * kColumns + t * 8 +
                     lane % 4 * 2) =
              make_float2(sums[g][i][t][half * 2], sums[g][i][t][half * 2 + 1]);
        }
}

// The filter weight that a partial belongs to; false: none.
struct Weight {
  int group, result, tap_h, tap_w, channel;

  __device__ bool find(const Args& args, int64 number) {
    const Part part((int)(number / kSumsPerPart));
    const int at = (int)(number % kSumsPerPart);
    const int row = part.first_row + at / kColumns % kRowsOfBlock;
    group = part.group + at / (kColumns * kRowsOfBlock);
    result = part.first_column + at % kColumns;
    return find_element(row / kUnit, row % kUnit, tap_h, tap_w, channel) &&
           group < (int)args.groups && result < kGroupResults &&
           channel / kDepth == result / kResultsOfGroup;
  }
};

// Fallback for unaligned pointers: a weight per thread, over the tiles of its piece.
extern "C" __global__ void __launch_bounds__(kThreads)
    conv_direct_filter_elements(const __grid_constant__ Args args) {
  const int64 number = (int64)blockIdx.y * kThreads + threadIdx.x;
  if (number >= args.sums) return;
  Weight weight;
  R sum = 0;
  const int end = weight.find(args, number) ? (int)args.tiles : 0;
  for (int i = blockIdx.x; i < end; i += gridDim.x) {
    const Tile tile(args, i);
    for (int p = 0; p < kTilePixels; ++p) {
      const int h = tile.h + p / kTileW, w = tile.w + p % kTileW;
      const int y = h * kStepH + weight.tap_h * kDilationH + kFirstH;
      const int x = w * kStepW + weight.tap_w * kDilationW + kFirstW;
      if (h >= (int)args.to_h || w >= (int)args.to_w || !is_within(y, (int)args.from_h) ||
          !is_within(x, (int)args.from_w))
        continue;
      R one[1], other[1];
      Index at[4];
      locate(tile.n, y, x, weight.group * kGroupChannels + weight.channel, at);
      source_of<1>(args, at, one);
      locate(tile.n, h, w, weight.group * kGroupResults + weight.result, at);
      gradient_of<1>(args, at, other);
      sum += one[0] * other[0];
    }
  }
  for (int k = 0; k < kWarpsK; ++k)
    ((float*)args.partial)[((int64)blockIdx.x * kWarpsK + k) * args.sums + number] =
        k == 0 ? sum : (R)0;
}

// Reduces 32 weights per CTA; its warps divide the pieces.
extern "C" __global__ void __launch_bounds__(kFinishThreads)
    conv_direct_filter_finish(const __grid_constant__ Args args) {
  __shared__ R slots[kFinishThreads];
  const int64 number = (int64)blockIdx.x * 32 + threadIdx.x % 32;
  const int row = threadIdx.x / 32, rows = kFinishThreads / 32;
  Weight weight;
  const bool exists = number < args.sums && weight.find(args, number);
  R sum = 0;
  if (exists) {
#pragma unroll 4
    for (int64 piece = row; piece < args.pieces; piece += rows)
      sum += ((const float*)args.partial)[piece * args.sums + number];
  }
  slots[threadIdx.x] = sum;
  __syncthreads();
  if (row != 0 || !exists) return;
  for (int other = 1; other < rows; ++other) sum += slots[other * 32 + threadIdx.x];
  const Index at[4] = {weight.group * kGroupResults + weight.result, weight.channel % kDepth,
                       kFlip ? kTapsH - 1 - weight.tap_h : weight.tap_h,
                       kFlip ? kTapsW - 1 - weight.tap_w : weight.tap_w};
  R values[1] = {sum};
  epilogue<1>(args, at, values);
}
