// Direct convolution, forward and backward-data. GEMM rows are results of the tile, columns are the
// filters of a group, per phase, in kTiles tiles of 8. A warp computes kRowTiles tiles of 16 rows
// and kOwnTiles tiles of columns for kOwnGroups groups.

static const int kWarpsOfGroup = kTiles / kOwnTiles;
static const int kOwnColumns = kOwnGroups * kOwnTiles * 8;
// kShuffled: columns are permuted so that a lane's results of four tiles are contiguous.
// Pitch of the staging buffer of the epilogue: lanes of two rows hit different banks.
static const int kRowPitch = kOwnColumns % 16 == 8 ? kOwnColumns : kOwnColumns + 8;

// The source coordinate of tap k of result `i`, by the definition of the convolution; false: none.
__device__ inline bool find_tap(int i, int k, int stride, int dilation, int padding, int extent,
                                int& at) {
  at = i * stride + k * dilation - padding;
  if (kBackward) {
    at = i + padding - k * dilation;
    if (at % stride != 0) return false;
    at /= stride;
  }
  return is_within(at, extent);
}
__device__ inline R stored_weight(const Args& args, int filter, int channel, int h, int w) {
  return weight_of(args, filter, channel, kFlip ? kTapsH - 1 - h : h, kFlip ? kTapsW - 1 - w : w);
}
// One result computed from the definition.
__device__ inline R direct_result(const Args& args, int n, int h, int w, int channel) {
  const int group = channel / kResultsOfGroup;
  R sum = 0;
  for (int kh = 0; kh < kTapsH; ++kh)
    for (int kw = 0; kw < kTapsW; ++kw) {
      int y, x;
      if (!find_tap(h, kh, kStrideH, kTapDilationH, kPaddingH, (int)args.from_h, y) ||
          !find_tap(w, kw, kStrideW, kTapDilationW, kPaddingW, (int)args.from_w, x))
        continue;
      for (int c = 0; c < kDepth; ++c) {
        Index at[4];
        locate(n, y, x, group * kDepth + c, at);
        R value[1];
        source_of<1>(args, at, value);
        sum += value[0] * (kBackward ? stored_weight(args, group * kDepth + c,
                                                     channel - group * kResultsOfGroup, kh, kw)
                                     : stored_weight(args, channel, c, kh, kw));
      }
    }
  return sum;
}

// Recomputes a NaN result. Padding zeros (shared columns or units, pixels outside the image) times
// infinities of other elements make NaN where the definition does not. Rare, hence not inlined.
__device__ __noinline__ R exact_result(const Args& args, int n, int h, int w, int channel) {
  return direct_result(args, n, h, w, channel);
}

// The weight of element `e` of unit `u` in column `column` of a group.
__device__ inline float weight_at(const Args& args, int group, int column, int u, int e) {
  int h, w, channel;
  if (!find_element(u, e, h, w, channel)) return 0;
  const int phase = column / kGroupResults, result = column % kGroupResults;
  if (phase >= kPhaseH * kPhaseW || channel / kDepth != result / kResultsOfGroup) return 0;
  if (group >= (int)args.groups) return 0;
  if (!kBackward)
    return stored_weight(args, group * kGroupResults + result, channel % kDepth, h, w);
  h = phase / kPhaseW + kPaddingH - (kFirstH + h) * kStrideH;
  w = phase % kPhaseW + kPaddingW - (kFirstW + w) * kStrideW;
  if (h % kTapDilationH != 0 || w % kTapDilationW != 0) return 0;
  h /= kTapDilationH;
  w /= kTapDilationW;
  if (!is_within(h, kTapsH) || !is_within(w, kTapsW)) return 0;
  return stored_weight(args, group * kGroupChannels + channel, result % kResultsOfGroup, h, w);
}

// The filter of column n of tile `tile`.
__device__ constexpr int column_of(int tile, int n) {
  return kShuffled ? tile / 4 * 32 + n / 2 * 8 + tile % 4 * 2 + n % 2 : tile * 8 + n;
}
// The groups and columns that CTAs with the same blockIdx.y compute.
struct Part {
  int group, first_column;

  __device__ explicit Part(int number) {
    group = number / kParts * kGroups;
    first_column = number % kParts * (kTiles * 8);
  }
};

// Weights of a CTA as MMA fragments: [step][group][tile][lane][unit of the step]. kSplits: the
// remainders follow in the same layout.
static const int kWeightWords = kSteps * kGroups * kTiles * 64;
static const int kAllWeightWords = (kSplits ? 2 : 1) * kWeightWords;

extern "C" __global__ void __launch_bounds__(kThreads)
    conv_direct_weights(const __grid_constant__ Args args) {
  launch_dependent_grids();
  const int number = (int)blockIdx.x * kThreads + threadIdx.x;
  if (number >= kWeightWords) return;
  const Part part((int)blockIdx.y);
  const int half = number % 2, lane = number / 2 % 32, tile = number / 64 % kTiles,
            own = number / (64 * kTiles) % kGroups, u = number / (64 * kTiles * kGroups) * 2 + half;
  const int column = part.first_column + column_of(tile, lane / 4), t = lane % 4;
  uint32* to = (uint32*)args.weights + (int64)blockIdx.y * kAllWeightWords + number;
  if constexpr (kIsShort) {
    *to = (uint32)to_word(weight_at(args, part.group + own, column, u, 2 * t)) |
          (uint32)to_word(weight_at(args, part.group + own, column, u, 2 * t + 1)) << 16;
  } else {
    const float weight = weight_at(args, part.group + own, column, u, t);
    *to = to_tf32(weight);
    if (kSplits) to[kWeightWords] = to_tf32(weight - __uint_as_float(*to));
  }
}
__device__ inline void stage_weights(const Args& args, uint2* to) {
  const uint32* from = (const uint32*)args.weights + (int64)blockIdx.y * kAllWeightWords;
  for (int i = threadIdx.x; i < kAllWeightWords / 4; i += kThreads)
    cp_async<16>((uint4*)to + i, (const uint4*)from + i);
}

// Operand A: the rows of a warp, gathered from the patch.
struct Rows {
  const Word* rows[kRowTiles][kAligned ? 1 : 2];
  bool second;  // kAligned: this lane addresses the second unit of a step
  uint32 shifts[kOdd ? kRowTiles : 1][2];  // kOdd: rows start at odd elements too

  __device__ Rows(const Word* patch, int first_row, int lane) {
    second = lane / 16 != 0;
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const int row = first_row + tile * 16;
      if constexpr (kAligned) {
        rows[tile][0] = patch + place_offset(row + lane % 16);
      } else {
        const int word = lane % 4 * (4 / (int)sizeof(Word));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int place = place_offset(row + lane / 4 + half * 8);
          rows[tile][half] = patch + (kOdd ? place & ~1 : place) + word;
          if (kOdd) shifts[tile][half] = place % 2 * 16;
        }
      }
    }
  }
  __device__ uint32 word_at(int tile, int half, int offset) const {
    const uint32* words = (const uint32*)(rows[tile][half] + offset);
    return kOdd ? __funnelshift_r(words[0], words[1], shifts[tile][half]) : words[0];
  }
  // Two units of the rows of `tile`, at `first` and first + gap elements from their origins.
  __device__ void load(int tile, int first, int gap, Operand<4>& a) const {
    const int next = first + gap;
    if constexpr (kAligned) {
      ldmatrix<false>(a.words, rows[tile][0] + (second ? gap : 0) + first);
    } else {
      a.words[0] = word_at(tile, 0, first);
      a.words[1] = word_at(tile, 1, first);
      a.words[2] = word_at(tile, 0, next);
      a.words[3] = word_at(tile, 1, next);
    }
    a.prepare();
  }
};

__device__ inline void load_weights(const uint2* from, Operand<2>& b) {
  b.words[0] = from->x;
  b.words[1] = from->y;
  if (kSplits) {
    b.rest[0] = from[kWeightWords / 2].x;
    b.rest[1] = from[kWeightWords / 2].y;
  }
}

// Stores kStored results that exist: of row m from `column` of a group on (NHWC), or of rows from m
// on (NCHW).
__device__ inline void store_results(const Args& args, const Tile& tile, int m, int group,
                                    int column, R (&values)[kStored]) {
  const int phase = column / kGroupResults, result = column % kGroupResults;
  const int h = (tile.h + m / kTileW) * kPhaseH + phase / kPhaseW;
  const int w = (tile.w + m % kTileW) * kPhaseW + phase % kPhaseW;
  if (m >= kTilePixels || h >= (int)args.to_h || w >= (int)args.to_w ||
      phase >= kPhaseH * kPhaseW || group >= (int)args.groups)
    return;
  Index at[4];
  locate(tile.n, h, w, group * kGroupResults + result, at);
  R sum = values[0];
#pragma unroll
  for (int i = 1; i < kStored; ++i) sum += values[i];
  if (sum != sum) {
#pragma unroll
    for (int i = 0; i < kStored; ++i)
      if (values[i] != values[i])
        values[i] = exact_result(args, tile.n, h, kChannelsLast ? w : w + i,
                                 group * kGroupResults + result + (kChannelsLast ? i : 0));
  }
  epilogue<kStored>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    conv_direct_pixels(const __grid_constant__ Args args) {
  Word* patches = (Word*)shared_memory();
  uint2* weights = (uint2*)(patches + kPatches * kPatchElements);
  float* rows_out = (float*)((uint32*)weights + kAllWeightWords);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = warp % kWarpsM * (kRowTiles * 16), part = warp / kWarpsM;
  const int own_group = part / kWarpsOfGroup * kOwnGroups;
  const int own_tile = part % kWarpsOfGroup * kOwnTiles;
  const Part block((int)blockIdx.y);
  const int group = block.group, first_column = block.first_column;

  int number = blockIdx.x;
  if (number < (int)args.tiles && kPatches > 1)
    stage_patch(args, Tile(args, number), group, patches);
  cp_async_commit_group();
  wait_on_dependent_grids();
  stage_weights(args, weights);
  cp_async_commit_group();
  const uint2* own_weights = weights + (own_group * kTiles + own_tile) * 32 + lane;
  Operand<2> held[kHeld ? kSteps : 1][kOwnGroups][kOwnTiles];
  if constexpr (kHeld) {
    cp_async_wait_group<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int g = 0; g < kOwnGroups; ++g)
#pragma unroll
        for (int t = 0; t < kOwnTiles; ++t)
          load_weights(own_weights + ((step * kGroups + g) * kTiles + t) * 32, held[step][g][t]);
  }

  for (int turn = 0; number < (int)args.tiles; ++turn) {
    const Tile tile(args, number);
    const Word* patch = patches + turn % kPatches * kPatchElements;
    number += gridDim.x;
    if constexpr (kPatches > 1) {
      if (number < (int)args.tiles)
        stage_patch(args, Tile(args, number), group,
                    patches + (turn + 1) % kPatches * kPatchElements);
    } else {
      stage_patch(args, tile, group, patches);
    }
    cp_async_commit_group();
    cp_async_wait_group<kPatches - 1>();
    __syncthreads();

    Accumulators sums[kRowTiles][kOwnGroups][kOwnTiles];
    const Rows rows(patch, first_row, lane);
    const auto multiply = [&](int step, int first, int gap) {
#pragma unroll
      for (int g = 0; g < kOwnGroups; ++g) {
        Operand<2> b[kOwnTiles];
#pragma unroll
        for (int t = 0; t < kOwnTiles; ++t) {
          if constexpr (kHeld)
            b[t] = held[step][g][t];
          else
            load_weights(own_weights + ((step * kGroups + g) * kTiles + t) * 32, b[t]);
        }
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          Operand<4> a;
          rows.load(m, (own_group + g) * kTapChannels + first, gap, a);
#pragma unroll
          for (int t = 0; t < kOwnTiles; ++t) sums[m][g][t].add(a, b[t]);
        }
      }
      if (kSplits && step % kPromoteInterval == kPromoteInterval - 1) {
#pragma unroll
        for (int i = 0; i < kRowTiles * kOwnGroups * kOwnTiles; ++i) (&sums[0][0][0])[i].promote();
      }
    };
    if constexpr (kStepsTogether > 0) {
      // The units of a tap, or of a row of taps, are contiguous.
#pragma unroll 1
      for (int step = 0; step < kSteps; step += kStepsTogether) {
        const int first = unit_offset(2 * step);
#pragma unroll
        for (int i = 0; i < kStepsTogether; ++i) multiply(step + i, first + 2 * i * kUnit, kUnit);
      }
    } else {
#pragma unroll kUnrolled
      for (int step = 0; step < kSteps; ++step) {
        const int first = unit_offset(2 * step);
        multiply(step, first, unit_offset(2 * step + 1) - first);
      }
    }

    const int g_row = lane / 4, word = lane % 4;
    if constexpr (kShuffled) {
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int g = 0; g < kOwnGroups; ++g)
#pragma unroll
            for (int t = 0; t < kOwnTiles; t += 4)
#pragma unroll
              for (int i = 0; i < 8; i += kStored) {
                R values[kStored];
#pragma unroll
                for (int j = 0; j < kStored; ++j)
                  values[j] = sums[m][g][t + (i + j) / 2][half * 2 + (i + j) % 2];
                store_results(args, tile, first_row + m * 16 + half * 8 + g_row,
                             group + own_group + g,
                             first_column + (own_tile + t) * 8 + word * 8 + i, values);
              }
    } else {
      float* slots = rows_out + warp * (16 * kRowPitch);
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        __syncwarp();
#pragma unroll
        for (int g = 0; g < kOwnGroups; ++g)
#pragma unroll
          for (int t = 0; t < kOwnTiles; ++t)
#pragma unroll
            for (int half = 0; half < 2; ++half)
              *(float2*)(slots + (g_row + half * 8) * kRowPitch + (g * kOwnTiles + t) * 8 +
                         word * 2) = make_float2(sums[m][g][t][half * 2],
                                                 sums[m][g][t][half * 2 + 1]);
        __syncwarp();
        const int kPackets = kOwnColumns / kStored, kRowPackets = 16 / kStored;
#pragma unroll 4
        for (int i = lane; i < 16 * kPackets; i += 32) {
          const int row = kChannelsLast ? i / kPackets : i % kRowPackets * kStored;
          const int column = kChannelsLast ? i % kPackets * kStored : i / kRowPackets;
          R values[kStored];
#pragma unroll
          for (int j = 0; j < kStored; ++j)
            values[j] = slots[row * kRowPitch + column + j * (kChannelsLast ? 1 : kRowPitch)];
          store_results(args, tile, first_row + m * 16 + row,
                       group + own_group + column / (kOwnTiles * 8),
                       first_column + own_tile * 8 + column % (kOwnTiles * 8), values);
        }
      }
    }
    __syncthreads();
  }
}

// Fallback for unaligned pointers: a result per thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    conv_direct_pixels_elements(const __grid_constant__ Args args) {
  wait_on_dependent_grids();
  const int64 count = args.to_h * args.to_w * args.to_channels * args.images;
  for (int64 i = (int64)blockIdx.x * kThreads + threadIdx.x; i < count;
       i += (int64)gridDim.x * kThreads) {
    int64 rest = i;
    const auto take = [&](int64 extent) {
      const int64 here = rest % extent;
      rest /= extent;
      return (int)here;
    };
    int h, w, channel;
    if (kChannelsLast) channel = take(args.to_channels);
    w = take(args.to_w);
    h = take(args.to_h);
    if (!kChannelsLast) channel = take(args.to_channels);
    Index at[4];
    locate((int)rest, h, w, channel, at);
    R values[1] = {direct_result(args, (int)rest, h, w, channel)};
    epilogue<1>(args, at, values);
  }
}
