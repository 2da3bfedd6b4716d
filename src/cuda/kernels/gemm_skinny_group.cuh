// y[few][many] = x[few][depth] * weights[many][depth] as gemm_skinny_rows.cuh has it, where
// warpgroups multiply (wgmma): weights go from shared memory to registers, become pairs there and
// are the first factor; x, put in the order of the weights (gemm_skinny_order.cuh), is the second,
// in shared memory. No lane that multiplies reads x, and one instruction multiplies 64 rows.
//
// A warpgroup has 64 rows, or two times 64, of each chunk, and every kWarpsK-th step of it. A piece
// is one step of 64 of its rows: a packet of row r and one of row r + 8 in each lane. While the
// products of a part of it run, the next part is converted; while those of a piece run, the sums of
// the one before are multiplied by their scales.
#include "lib/ptx_barrier.cuh"

static const int kHalf = WGMMA_N / 2;                    // sums of a lane, of 64 rows
static const int kTogether = kSlices < 4 ? kSlices : 4;  // slices of a part
static const int kParts = kSlices / kTogether;           // of a piece
static const int kPartWords = 2 * kTogether / kPairs;    // of a packet
// Pieces whose sums wait for their scales at a time: where registers are few, one.
static const int kOwnPlaces = kHalf == 16 && kWarps > 12 ? 1 : 2;
static const int kOwnSteps = kSteps / kWarpsK;
static const int kAllPieces = kTiles * kOwnSteps;  // of a chunk, an even number
// In one turn of a loop.
static const int kMostPieces = kScaled && kOwnPlaces == 1 ? 2 : 8;
static const int kTurnPieces = kAllPieces <= kMostPieces ? kAllPieces : kMostPieces;
static const int kSumFloats = kWarpsK * kFewAtOnce * kPitch;
static const int kSumPlaces = kClusterBlocks == 1 ? 2 : 1;
static const int kAllBytes = kStages * kStageBytes + kSumPlaces * kSumFloats * 4;  // then barriers

// Which of 8 rows lanes g have: eight lanes side by side, of two rows, then meet in no bank.
__device__ inline int row_of_lane(int g) {
  if constexpr (kPieces == 1) return (g & 2) | (g & 1) << 2 | g >> 2;
  if constexpr (kPieces == 2) return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
  return g;
}

struct GroupSums {
  // sums[i]: of rows 16 i + r and 16 i + 8 + r of the warp.
  float sums[kTiles][kHalf];

  __device__ GroupSums() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) fill(0.f, sums[i]);
  }
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, r = row_of_lane(lane / 4), t = lane % 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int v = 0; v < kHalf; ++v) {
        const int m = v / 4 * 8 + 2 * t + v % 2;
        if (m < kFew) use(16 * i + v / 2 % 2 * 8 + r, m, sums[i][v]);
      }
  }
};

// The lane's part of a chunk.
struct GroupLane {
  const uint8* stage;
  int row, swizzled;  // of the block's rows; of its first step
  int step;           // the warpgroup's first; the others are kWarpsK further each

  __device__ GroupLane(int warp) {
    const int lane = threadIdx.x % 32, r = row_of_lane(lane / 4);
    row = warp % kWarpsN * kWarpRows + r;
    step = kWarpsK == 1 ? 0 : warp / kWarpsN;
    swizzled = (lane % 4 ^ (r * kPieces & 7) ^ step % 2 * 4 ^ step / 2) * 16;
  }
  // Whether a sum of x, by which offsets come off, is not finite.
  __device__ bool has_lost() const {
    const int lane = threadIdx.x % 32;
    const uint32* const flags = (const uint32*)(stage + kFirstX + kFirstFlag);
    return __any_sync(0xffffffffu, lane < kBlocksX && flags[lane] != 0u);
  }
  // Of the warpgroup's step `number`: steps are the halves of pieces of 128 bytes.
  __device__ void packets(int number, int tile, Words (&low_high)[2]) const {
    const int piece = number * kWarpsK / 2, half = number * kWarpsK % 2;  // past the first step
    const uint8* const from = stage + (row + 16 * tile) * kChunk + (step / 2 + piece) * 128 +
                              (swizzled ^ (half * 4 ^ piece) * 16);
    low_high[0].piece = *(const Piece*)from;
    low_high[1].piece = *(const Piece*)(from + 8 * kChunk);
  }
  __device__ void scales(int number, int tile, float (&factors)[2]) const {
    const int group = (number * kWarpsK + step) * kStepDepth / kScaleBlock;
    const typename S::Word* const from =
        (const typename S::Word*)(stage + kFirstScale + group * kGroupBytes) + row + 16 * tile;
    factors[0] = (float)widen(S(), from[0]);
    factors[1] = (float)widen(S(), from[8]);
  }
};

// kOffset: with their offset. NaN of e4m3 needs no mark: sm_90 has an instruction that keeps it.
template <bool kOffset, class D>
__device__ inline void part_of_packets(D d, const Words (&low_high)[2], int part,
                                       uint32 (&factors)[kTogether][4]) {
#pragma unroll
  for (int w = 0; w < kPartWords; ++w)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32 pairs[kPairs];
      const uint32 word = low_high[half].words[part * kPartWords + w];
      if constexpr (kOffset)
        to_offset_pairs(d, T(), word, pairs);
      else
        to_pairs(d, T(), word, pairs);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const int q = w * kPairs + j;
        factors[q / 2][q % 2 * 2 + half] = pairs[j];
      }
    }
}
// The first part of a piece with scales begins its sums: with the slice that takes off what the
// offset adds, where there is one.
template <bool kOffset>
__device__ inline void multiply_part(float (&sums)[kHalf], const uint32 (&factors)[kTogether][4],
                                     uint64 x, uint64 offsets, bool keeps) {
  fence_products();
  if (kOffset && !keeps) {
    const uint32 one = power_pair<T>(0), ones[4] = {one, one, one, one};
    multiply(sums, ones, offsets, false);
    keeps = true;
  }
#pragma unroll
  for (int c = 0; c < kTogether; ++c)
    multiply(sums, factors[c], advance_descriptor(x, c * kSliceBytes), keeps || c > 0);
  commit_products();
}
__device__ inline void add_scaled(float (&sums)[kHalf], float (&own)[kHalf],
                                  const float (&factors)[2]) {
  keep_in_registers(own);
#pragma unroll
  for (int v = 0; v < kHalf; ++v) sums[v] = fmaf(own[v], factors[v / 2 % 2], sums[v]);
}

// The products of a chunk. Nothing runs from one turn of the loop to the next: the compiler could
// not tell which registers are in use, and would wait for every product.
template <bool kOffset>
__device__ inline void add_chunk(const GroupLane& lane, GroupSums& all) {
  // From where on slices are counted: elsewhere with and without the offset, else the compiler
  // makes one descriptor for both and takes four instructions for each product instead of one.
  constexpr int kCountedFrom = kOffset || !kOffsets ? 0 : kSliceBytes;
  const uint64 x = matrix_descriptor<32>(
      lane.stage + kFirstX + lane.step * (kSlices * kSliceBytes) + kCountedFrom, 0, kPitchX);
  const uint64 offsets =
      advance_descriptor(x, kFirstOffset - lane.step * ((kSlices - 1) * kSliceBytes));
  uint32 factors[2][kTogether][4];
  float own[kOwnPlaces][kHalf], scales[kOwnPlaces][2];  // where there are scales
  Words packets[2], next[2];
  lane.packets(0, 0, packets);
  part_of_packets<kOffset>(W(), packets, 0, factors[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kTurnPieces) {
#pragma unroll
    for (int n = 0; n < kTurnPieces; ++n) {
      const int tile = n % kTiles, number = (first + n) / kTiles;  // of the warpgroup's steps
      const bool has_next = n + 1 < kTurnPieces || first + kTurnPieces < kAllPieces;
      if (has_next) lane.packets((first + n + 1) / kTiles, (n + 1) % kTiles, next);
      if constexpr (kScaled) lane.scales(number, tile, scales[n % kOwnPlaces]);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const int here = (n * kParts + part) % 2;
        const uint64 slices = advance_descriptor(
            x, (number * kWarpsK * kSlices + part * kTogether) * kSliceBytes - kCountedFrom);
        const uint64 offset = advance_descriptor(offsets, number * kWarpsK * kSliceBytes);
        if constexpr (kScaled)
          multiply_part<kOffset>(own[n % kOwnPlaces], factors[here], slices, offset, part > 0);
        else
          multiply_part<false>(all.sums[tile], factors[here], slices, offset, true);
        wait_for_products<1>();  // of the part before
        if constexpr (kScaled && kOwnPlaces == 2)
          if (part == 0 && n > 0)
            add_scaled(all.sums[(n + kTiles - 1) % kTiles], own[(n + 1) % 2], scales[(n + 1) % 2]);
        if (part + 1 < kParts)
          part_of_packets<kOffset>(W(), packets, part + 1, factors[1 - here]);
        else if (has_next)
          part_of_packets<kOffset>(W(), next, 0, factors[1 - here]);
      }
      packets[0] = next[0];
      packets[1] = next[1];
      if constexpr (kScaled && kOwnPlaces == 1) {
        wait_for_products<0>();
        add_scaled(all.sums[tile], own[0], scales[0]);
      }
    }
    wait_for_products<0>();
    if constexpr (kScaled && kOwnPlaces == 2) add_scaled(all.sums[kTiles - 1], own[1], scales[1]);
  }
  if constexpr (!kScaled) keep_in_registers(all.sums);
}

// The end of a unit: sums of warps, 8 rows of x at a time, in two places of shared memory in turn:
// whoever comes to a place again has met the others at the other place meanwhile. Blocks of a
// cluster, which have one unit, add theirs between two barriers of the cluster, all rows of x at
// once.
__device__ inline void finish_group(const Args& args, const Place& place, const GroupSums& products,
                                    float* memory, int& round, int warp) {
  const int rank = blockIdx.x % kClusterBlocks;
#pragma unroll 1
  for (int first = 0; first < kFew; first += kFewAtOnce, ++round) {
    float* const sums = memory + round % kSumPlaces * kSumFloats;
    products.visit([&](int row, int m, float sum) {
      if (kFewAtOnce == kFew || (unsigned)(m - first) < (unsigned)kFewAtOnce)
        sums[(warp / kWarpsN * kFewAtOnce + m - first) * kPitch + warp % kWarpsN * kWarpRows +
             row] = sum;
    });
    group_barrier<kThreads>(0);
    add_and_store<kClusterBlocks, kVectorY>(args, place, first, sums, rank);
  }
}

extern "C" __global__ void __launch_bounds__(kAllThreads, kBlocks)
    gemm_skinny_group(const __grid_constant__ Args args) {
  uint8* const start = shared_memory();
  // Where the swizzle's pattern begins. Not rounded as an integer: it stays known to be shared.
  uint8* const memory = start + (1024 - (uint64)start % 1024) % 1024;
  Mbarrier* const barriers = (Mbarrier*)(memory + kAllBytes);
  const Ring ring = {memory, barriers, barriers + kStages, barriers + 2 * kStages};
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);  // the same for all lanes
  GroupWalk walk(args);
  // Measured in a row: clusters gain up to 13 % where the next launch, which puts x in order, is
  // there from the start; other blocks gain nothing or lose, they let it in with their last chunk.
  if constexpr (kClusterBlocks > 1) let_next_launch_start();
  if (warp == kWarps) {
    // Nobody else knows the barriers yet, but the first bytes are on their way.
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        init_barrier(ring.full + s, 1 + (kHelpers - 1) * 32);
        init_barrier(ring.read + s, kThreads);
        if (kOrdersHere) init_barrier(ring.brought + s, 1);
      }
      fence_barriers();
      fence_shared_writes();
    }
    __syncwarp();
    const int early = early_stages(args);
    GroupWalk of_weights = walk;
#pragma unroll 1
    for (int s = 0; s < early && of_weights.has_more(args); ++s, of_weights.next())
      ask_for_weights(args, of_weights, ring);
    wait_for_launch_before();
#pragma unroll 1
    for (int s = 0; s < kStages && walk.has_more(args); ++s, walk.next()) {
      if (s >= early) ask_for_weights(args, walk, ring);
      ask_for_x(args, walk, ring);
    }
  }
  __syncthreads();

  if (warp >= kWarps) {
    if (warp == kWarps)
      ask_for_chunks(args, walk, ring);
    else if (kOrdersHere)
      order_chunks(args, walk, ring, warp - kWarps - 1);
    if constexpr (kClusterBlocks > 1) cluster_barrier();  // that of the sums
  } else {
    wait_for_launch_before();  // operands of the end may come from it
    GroupLane lane(warp);
    int round = 0;
    Place place;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) place.batch[axis] = 0;
#pragma unroll 1
    for (; walk.has_more(args); walk.unit += walk.every) {
      place.first_row = (Index)walk.unit * kRows;
      GroupSums sums;
#pragma unroll 1
      for (int chunk = 0; chunk < walk.chunks; ++chunk, walk.next_stage()) {
        lane.stage = memory + walk.stage * kStageBytes;
        wait_for(ring.full + walk.stage, walk.parity);
        if (kOffsets && !lane.has_lost())
          add_chunk<kOffsets>(lane, sums);
        else
          add_chunk<false>(lane, sums);
        arrive(ring.read + walk.stage);
      }
      finish_group(args, place, sums, (float*)(memory + kStages * kStageBytes), round, warp);
    }
  }
  if constexpr (kClusterBlocks > 1) cluster_barrier();  // others may still read sums
}
