// Direct convolution, forward and gradient of the input. The rows of the products are results of
// the tile, their columns the filters of a group, of each phase, in kTiles tiles of 8. A warp makes
// kRowTiles tiles of 16 rows and kOwnTiles tiles of columns of kOwnGroups groups.

static const int kWarpsOfGroup = kTiles / kOwnTiles;
static const int kOwnColumns = kOwnGroups * kOwnTiles * 8;
// kShuffled: columns are in an order that makes a lane's results of four tiles neighbours in memory.
// Rows of results on their way to memory: lanes of two rows in different banks.
static const int kRowPitch = kOwnColumns % 16 == 8 ? kOwnColumns : kOwnColumns + 8;

// Where the convolution as it is defined takes tap k of result `i`: false: nowhere.
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
// One result as it is defined.
__device__ inline R defined_result(const Args& args, int n, int h, int w, int channel) {
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

// The same for what the products cannot give, which is rare: weights that are 0 only because columns
// or units are shared, and pixels outside of the image, turn infinities of others into NaN.
__device__ __noinline__ R exact_result(const Args& args, int n, int h, int w, int channel) {
  return defined_result(args, n, h, w, channel);
}

// Where in shared memory the weight of element `e` of unit `u` in a column of a block's group is: by
// step, group, tile and lane, the way lanes want them.
__device__ inline int weight_slot(int group, int column, int u, int e) {
  const int tile = kShuffled ? column / 32 * 4 + column % 8 / 2 : column / 8;
  const int n = kShuffled ? column % 32 / 8 * 2 + column % 2 : column % 8;
  const int lane = n * 4 + e * (int)sizeof(Word) / 4;
  const int words = ((u / 2 * kGroups + group) * kTiles + tile) * 64 + lane * 2 + u % 2;
  return words * (4 / (int)sizeof(Word)) + e % (4 / (int)sizeof(Word));
}

// The weights of a block are those of kBlockFilters filters, in the order of memory.
static const int kBlockFilters = kBackward      ? kGroups * kGroupChannels
                                 : kParts > 1 ? kTiles * 8
                                              : kGroups * kGroupResults;
static const int kFilterChannels = kBackward ? kResultsOfGroup : kDepth;
static const int kBlockWeights = kBlockFilters * kFilterChannels * kTapsH * kTapsW;

struct Weight {
  int filter, channel, h, w;  // of the block's filters

  __device__ explicit Weight(int number) {
    const auto take = [&](int extent) {
      const int here = number % extent;
      number /= extent;
      return here;
    };
    if (kChannelsLast) channel = take(kFilterChannels);
    w = take(kTapsW);
    h = take(kTapsH);
    if (!kChannelsLast) channel = take(kFilterChannels);
    filter = number;
  }
  // Its place in shared memory; -1: none.
  __device__ int slot(int first_column) const {
    // Of its group: the channel it multiplies, and the result it is for.
    const int per_group = kBackward ? kGroupChannels : kGroupResults;
    const int group = filter / per_group;
    const int own = filter % per_group + (kBackward ? 0 : first_column);
    int source = own, result = own, tap_h = h, tap_w = w, phase = 0;
    if (kBackward) {
      result = own / kDepth * kResultsOfGroup + channel;
      const int above_h = kPaddingH - h * kTapDilationH, above_w = kPaddingW - w * kTapDilationW;
      // The phase from which the tap reaches a whole place.
      const int phase_h = ((-above_h) % kStrideH + kStrideH) % kStrideH;
      const int phase_w = ((-above_w) % kStrideW + kStrideW) % kStrideW;
      tap_h = (phase_h + above_h) / kStrideH - kFirstH;
      tap_w = (phase_w + above_w) / kStrideW - kFirstW;
      phase = phase_h * kPhaseW + phase_w;
    } else {
      source = own / kResultsOfGroup * kDepth + channel;
    }
    const int column = phase * kGroupResults + result - first_column;
    if (!is_within(column, kTiles * 8)) return -1;
    const int at = kRuns ? kLead + tap_w * kPixel + source : source;
    const int u = kRuns ? tap_h * kUnitsOfRow + at / kUnit
                        : (tap_h * kWindowW + tap_w) * kUnitsOfTap + at / kUnit;
    return weight_slot(group, column, u, at % kUnit);
  }
};

__device__ inline void stage_weights(const Args& args, int group, int first_column, Word* to) {
  const int kZeros = kSteps * kGroups * kTiles * 16;  // of 16 bytes
  for (int i = threadIdx.x; i < kZeros; i += kThreads) ((uint4*)to)[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  const int kTogether = 8;  // on their way from memory
  const int first_filter = kBackward ? group * kGroupChannels : group * kGroupResults + first_column;
  const int filters = (int)(kBackward ? args.from_channels : args.to_channels) - first_filter;
  for (int i = threadIdx.x; i < kBlockWeights; i += kThreads * kTogether) {
    R values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const Weight weight(i + j * kThreads);
      values[j] = 0;
      if (weight.filter < kBlockFilters && weight.filter < filters)
        values[j] = stored_weight(args, first_filter + weight.filter, weight.channel, weight.h,
                                  weight.w);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const Weight weight(i + j * kThreads);
      const int slot = weight.filter < kBlockFilters ? weight.slot(first_column) : -1;
      if (slot >= 0) to[slot] = to_word(values[j]);
    }
  }
}

// Where a warp's rows of the products lie in the patch.
struct Rows {
  const Word* rows[kRowTiles][kAligned ? 1 : 2];
  bool second;  // kAligned: this lane has addresses of the second unit of a step

  __device__ Rows(const Word* patch, int first_row, int lane) {
    second = lane / 16 != 0;
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const int row = first_row + tile * 16;
      if constexpr (kAligned) {
        rows[tile][0] = patch + place_offset(row + lane % 16);
      } else {
        const int word = lane % 4 * (4 / (int)sizeof(Word));
        rows[tile][0] = patch + place_offset(row + lane / 4) + word;
        rows[tile][1] = patch + place_offset(row + lane / 4 + 8) + word;
      }
    }
  }
  // Units 2 step and 2 step + 1 of tile's rows, `offset` elements further on.
  __device__ void load(int tile, int step, int offset, uint32 (&a)[4]) const {
    const int first = unit_offset(2 * step), next = unit_offset(2 * step + 1);
    if constexpr (kAligned) {
      load_matrices<false>(a, rows[tile][0] + offset + (second ? next : first));
    } else {
      a[0] = *(const uint32*)(rows[tile][0] + first);
      a[1] = *(const uint32*)(rows[tile][1] + first);
      a[2] = *(const uint32*)(rows[tile][0] + next);
      a[3] = *(const uint32*)(rows[tile][1] + next);
    }
  }
};

// kStored results of row m of the tile from `column` of a group on, as far as they exist.
__device__ inline void keep_results(const Args& args, const Tile& tile, int m, int group,
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
        values[i] = exact_result(args, tile.n, h, w, group * kGroupResults + result + i);
  }
  epilogue<kStored>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    conv_direct_pixels(const __grid_constant__ Args args) {
  Word* patches = (Word*)shared_memory();
  uint2* weights = (uint2*)(patches + kPatches * kPatchElements);
  float* rows_out = (float*)(weights + kSteps * kGroups * kTiles * 32);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = warp % kWarpsM * (kRowTiles * 16), part = warp / kWarpsM;
  const int own_group = part / kWarpsOfGroup * kOwnGroups, own_tile = part % kWarpsOfGroup * kOwnTiles;
  const int group = (int)blockIdx.y / kParts * kGroups;
  const int first_column = (int)blockIdx.y % kParts * (kTiles * 8);

  int number = blockIdx.x;
  if (number < (int)args.tiles && kPatches > 1) stage_patch(args, Tile(args, number), group, patches);
  commit_copies();
  stage_weights(args, group, first_column, (Word*)weights);
  const uint2* own_weights = weights + (own_group * kTiles + own_tile) * 32 + lane;
  uint2 held[kHeld ? kSteps : 1][kOwnGroups][kOwnTiles];
  if constexpr (kHeld) {
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int g = 0; g < kOwnGroups; ++g)
#pragma unroll
        for (int t = 0; t < kOwnTiles; ++t)
          held[step][g][t] = own_weights[((step * kGroups + g) * kTiles + t) * 32];
  }

  for (int turn = 0; number < (int)args.tiles; ++turn) {
    const Tile tile(args, number);
    const Word* patch = patches + turn % kPatches * kPatchElements;
    number += gridDim.x;
    if constexpr (kPatches > 1) {
      if (number < (int)args.tiles)
        stage_patch(args, Tile(args, number), group, patches + (turn + 1) % kPatches * kPatchElements);
    } else {
      stage_patch(args, tile, group, patches);
    }
    commit_copies();
    wait_for_copies<kPatches - 1>();
    __syncthreads();

    float sums[kRowTiles][kOwnGroups][kOwnTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles * kOwnGroups * kOwnTiles * 4; ++i) (&sums[0][0][0][0])[i] = 0;
    const Rows rows(patch, first_row, lane);
#pragma unroll kUnrolled
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int g = 0; g < kOwnGroups; ++g) {
        uint32 b[kOwnTiles][2];
#pragma unroll
        for (int t = 0; t < kOwnTiles; ++t) {
          const uint2 pair = kHeld ? held[kHeld ? step : 0][g][t]
                                   : own_weights[((step * kGroups + g) * kTiles + t) * 32];
          b[t][0] = pair.x;
          b[t][1] = pair.y;
        }
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          uint32 a[4];
          rows.load(m, step, (own_group + g) * kTapChannels, a);
#pragma unroll
          for (int t = 0; t < kOwnTiles; ++t) multiply_add(Element(), sums[m][g][t], a, b[t]);
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
                keep_results(args, tile, first_row + m * 16 + half * 8 + g_row,
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
        const int kPackets = kOwnColumns / kStored;
#pragma unroll 4
        for (int i = lane; i < 16 * kPackets; i += 32) {
          const int row = kChannelsLast ? i / kPackets : i % 16;
          const int column = (kChannelsLast ? i % kPackets : i / 16) * kStored;
          R values[kStored];
#pragma unroll
          for (int j = 0; j < kStored; ++j) values[j] = slots[row * kRowPitch + column + j];
          keep_results(args, tile, first_row + m * 16 + row,
                       group + own_group + column / (kOwnTiles * 8),
                       first_column + own_tile * 8 + column % (kOwnTiles * 8), values);
        }
      }
    }
    __syncthreads();
  }
}

// For pointers that are not aligned: a result per thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    conv_direct_pixels_elements(const __grid_constant__ Args args) {
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
    R values[1] = {defined_result(args, (int)rest, h, w, channel)};
    epilogue<1>(args, at, values);
  }
}
