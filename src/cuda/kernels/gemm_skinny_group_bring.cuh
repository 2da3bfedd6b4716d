// Products with few rows by warpgroups (gemm_skinny_group.cuh): what a stage of their ring holds,
// and the warps that fill it.
//
// A stage has a chunk: kChunk bytes of each of the block's rows, in pieces of 128 bytes swizzled by
// the copy engine; x of the same depths as the second factor of wgmma, in the order in which lanes
// have the weights; the scales of these weights. One warp asks the copy engine, the other helpers
// put x in its order, straight from global memory.
//
// Where 4-bit weights are multiplied with their offset (kOffsets), what that adds to the sums of a
// step comes off again by one more slice, the step's first: minus the offset times the sum of x, as
// three numbers of 8 bits. Helpers tell by a flag of the stage where that sum is not finite.
#include "lib/ptx_matrix.cuh"
#include "lib/ptx_memory.cuh"
#include "lib/ptx_tma.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kWarps = kWarpsN * kWarpsK;
static const int kAllThreads = (kWarps + kHelpers) * 32;
static const int kOrderThreads = (kHelpers - 1) * 32;
static const int kPieces = kChunk / 128;
static const int kSteps = kChunk / kStepBytes;
static const int kChunkDepth = kChunk * 8 / kBits;
static const int kSlices = kOwn / 4;  // of 16 depths, in a step
static const int kSliceBytes = WGMMA_N * 32;
static const int kGroups = kScaled ? kChunkDepth / kScaleBlock : 0;
static const int kGroupBytes = kRows * (int)sizeof(typename S::Word);
static const int kFirstX = kRows * kChunk;
static const bool kOffsets = kScaled && HasOffset<W>::value && ShortFloat<T>::kBias == 127;
static const int kStepX = (kSlices + (kOffsets ? 1 : 0)) * kSliceBytes;  // of a step
static const int kFirstScale = kFirstX + kSteps * kStepX;
static const int kFirstFlag = kFirstScale + kGroups * kGroupBytes;
static const int kStageBytes = (kFirstFlag + (kOffsets ? 16 : 0) + 1023) / 1024 * 1024;

// The chunks of a block in their order, each with its stage: those of some rows, then those of the
// next. All warps walk it, each for itself.
struct GroupWalk {
  int unit, every, first_chunk, chunks;
  int chunk, stage, parity;

  __device__ GroupWalk(const Args& args) : chunk(0), stage(0), parity(0) {
    const int rank = blockIdx.x % kClusterBlocks, all = (int)args.rounds;
    const int most = (all + kClusterBlocks - 1) / kClusterBlocks;
    unit = blockIdx.x / kClusterBlocks;
    every = gridDim.x / kClusterBlocks;
    first_chunk = rank * most;
    chunks = min(most, all - first_chunk);
  }
  __device__ bool has_more(const Args& args) const { return unit < (int)args.units; }
  __device__ void next_stage() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ void next() {
    next_stage();
    if (++chunk < chunks) return;
    chunk = 0;
    unit += every;
  }
};

// By one thread. The whole box counts: zeros stand for what lies outside of the matrix.
template <class SomeArgs>  // which need not have scales
__device__ inline void ask_for_chunk(const SomeArgs& args, const GroupWalk& walk, uint8* memory,
                                     Mbarrier* full) {
  uint8* const to = memory + walk.stage * kStageBytes;
  Mbarrier* const barrier = full + walk.stage;
  const int chunk = walk.first_chunk + walk.chunk, row = walk.unit * kRows;
  arrive_and_expect(barrier, kRows * kChunk + kGroups * kGroupBytes);
  const int at[3] = {0, chunk * kPieces, row};
  load_box(to, args.map_weights, barrier, at);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    load_box(to + kFirstScale, args.map_scales, barrier, at_scales);
  }
}

// An item of x is, of one of its rows, a unit of 8 depths of each of the four lanes that share the
// rows of weights. Slice s of a step has pairs 2 s and 2 s + 1 of each lane's packet: 16 bytes of
// the first (of all four lanes), then 16 of the second, exchanged where the swizzle does so. A
// thread has kItemsTogether items at a time, and loads the next while it puts these in order.
static const int kItems = kFewTiles * 8 * kSteps * kUnits;
static const int kItemsTogether = kItems > kOrderThreads ? 2 : 1;
static const int kBatchItems = kOrderThreads * kItemsTogether;
static const int kBatches = (kItems + kBatchItems - 1) / kBatchItems;  // of a chunk
struct Item {
  int number, m, u, step;
  __device__ Item(int batch, int n) {
    number = batch * kBatchItems + n * kOrderThreads + (int)threadIdx.x - (kWarps + 1) * 32;
    m = number % 8 + number / (8 * kSteps * kUnits) * 8;
    u = number / 8 % kUnits;
    step = number / (8 * kUnits) % kSteps;
  }
};
struct Units {
  uint4 of[kItemsTogether][4];

  // What lies past the end is 0.
  __device__ void load(const Args& args, int chunk, int batch) {
#pragma unroll
    for (int n = 0; n < kItemsTogether; ++n) {
      const Item item(batch, n);
      const int depth = chunk * kChunkDepth + item.step * kStepDepth + item.u * kUnit;
      const bool inside = item.number < kItems && item.m < kFew;
      const typename T::Word* const from =
          (const typename T::Word*)args.x + item.m * args.x_row_stride + depth;
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        of[n][t] = make_uint4(0u, 0u, 0u, 0u);
        if (inside && depth + t * kOwn < (int)args.depth)
          of[n][t] = load_read_only((const uint4*)(from + t * kOwn));
      }
    }
  }
};

// By a warp, of 8 rows of x of a step that it has just put in order. Returns whether a sum is not
// finite.
__device__ inline bool add_offsets(uint8* to) {
  const int lane = threadIdx.x % 32;
  const uint32 minus = offset_pair<T>(W()) | kMinus, factor[4] = {minus, minus, minus, minus};
  float sums[2][4] = {};
#pragma unroll
  for (int s = 0; s < kSlices; s += 2) {
    uint32 some[4];  // in whatever order of depths
    load_matrices<false>(
        some, to + (1 + s + lane / 16) * kSliceBytes + lane % 8 * 32 + lane / 8 % 2 * 16);
    const uint32 first[2] = {some[0], some[1]}, second[2] = {some[2], some[3]};
    multiply_add(T(), sums[0], factor, first);
    multiply_add(T(), sums[1], factor, second);
  }
  // Of rows 2 t and 2 t + 1 all lanes t have the sums.
  const float sum =
      lane / 4 % 2 == 0 ? sums[0][0] + sums[1][0] : sums[0][1] + sums[1][1];
  const uint32 high = __float_as_uint(sum) & 0xffff0000u;
  const float rest = sum - __uint_as_float(high);
  const uint32 middle = __float_as_uint(rest) & 0xffff0000u;
  const uint32 low = __float_as_uint(rest - __uint_as_float(middle));
  if (lane < 8) {
    const int m = lane % 4 * 2 + lane / 4, turned = m / 4 * 16;
    *(uint4*)(to + m * 32 + turned) = make_uint4(high >> 16 | middle, low >> 16, 0u, 0u);
    *(uint4*)(to + m * 32 + (turned ^ 16)) = make_uint4(0u, 0u, 0u, 0u);
  }
  return !(fabsf(sum) < 3e38f);
}
// Returns whether a sum of the lane's is not finite.
__device__ inline bool put_in_order(const Units& units, int batch, uint8* to) {
  bool is_lost = false;
#pragma unroll
  for (int n = 0; n < kItemsTogether; ++n) {
    const Item item(batch, n);
    if (item.number >= kItems) break;
    uint4 pairs[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) pairs[t] = in_order_of_weights(units.of[n][t]);
    uint8* const row =
        to + item.step * kStepX + (kOffsets + 2 * item.u) * kSliceBytes + item.m * 32;
    const int turned = item.m / 4 % 2 * 16;
    *(uint4*)(row + turned) = make_uint4(pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x);
    *(uint4*)(row + (turned ^ 16)) = make_uint4(pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y);
    *(uint4*)(row + kSliceBytes + turned) =
        make_uint4(pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z);
    *(uint4*)(row + kSliceBytes + (turned ^ 16)) =
        make_uint4(pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w);
  }
  if constexpr (kOffsets) {  // 32 items are a step of 8 rows
    __syncwarp();
#pragma unroll
    for (int n = 0; n < kItemsTogether; ++n) {
      const Item item(batch, n);
      if (item.number >= kItems) break;
      is_lost |= add_offsets(to + item.step * kStepX + item.m / 8 * 8 * 32);
    }
  }
  return is_lost;
}

// What the warp that asks does after it has filled all stages once, and what the others do.
__device__ inline void ask_for_chunks(const Args& args, GroupWalk walk, uint8* memory,
                                      Mbarrier* full, Mbarrier* read) {
  for (; walk.has_more(args); walk.next()) {
    wait_for(read + walk.stage, walk.parity ^ 1);
    if (threadIdx.x % 32 == 0) ask_for_chunk(args, walk, memory, full);
    __syncwarp();
  }
}
__device__ inline void order_chunks(const Args& args, GroupWalk walk, uint8* memory,
                                    Mbarrier* full, Mbarrier* read) {
  GroupWalk ahead = walk;
  Units next;
  next.load(args, walk.first_chunk, 0);
#pragma unroll 1
  for (; walk.has_more(args); walk.next()) {
    uint8* const stage = memory + walk.stage * kStageBytes;
    bool is_lost = false;
    ahead.next();
#pragma unroll 1
    for (int batch = 0; batch < kBatches; ++batch) {
      const Units units = next;
      const bool same = batch + 1 < kBatches;
      if (same || ahead.has_more(args))
        next.load(args, walk.first_chunk + (same ? walk.chunk : ahead.chunk), same ? batch + 1 : 0);
      if (batch == 0) wait_for(read + walk.stage, walk.parity ^ 1);
      is_lost |= put_in_order(units, batch, stage + kFirstX);
    }
    if constexpr (kOffsets) {
      is_lost = __any_sync(0xffffffffu, is_lost);
      if (threadIdx.x % 32 == 0)
        ((uint32*)(stage + kFirstFlag))[threadIdx.x / 32 - kWarps - 1] = is_lost ? 1u : 0u;
    }
    fence_shared_writes();
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(full + walk.stage);
  }
}
