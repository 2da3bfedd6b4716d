// Products with few rows by warpgroups (gemm_skinny_group.cuh): what a stage of their ring holds,
// and the warps that fill it.
//
// A stage has a chunk: kChunk bytes of each of the block's rows, in pieces of 128 bytes swizzled by
// the copy engine; x of the same depths as the second factor of wgmma, in the order in which lanes
// have the weights; the scales of these weights. One warp asks the copy engine. It brings x as it
// is, 64 depths of 8 rows to a place of 1024 bytes; the other helpers put it in order where it is.
//
// Where 4-bit weights are multiplied with their offset (kOffsets), what that adds to the sums of a
// step comes off again by one more slice of x: minus the offset times the sum of x, as three
// numbers of 8 bits. Helpers tell by a flag of the stage where that sum is not finite.
#include "lib/ptx_launch.cuh"
#include "lib/ptx_matrix.cuh"
#include "lib/ptx_tma.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kWarps = kWarpsN * kWarpsK;
static const int kAllThreads = (kWarps + kHelpers) * 32;
static const int kPieces = kChunk / 128;
static const int kSteps = kChunk / kStepBytes;
static const int kChunkDepth = kChunk * 8 / kBits;
static const int kGroups = kScaled ? kChunkDepth / kScaleBlock : 0;
static const int kGroupBytes = kRows * (int)sizeof(typename S::Word);
static const bool kOffsets = kScaled && HasOffset<W>::value && ShortFloat<T>::kBias == 127;
// x of 8 of its rows: slices of 16 depths, 32 bytes of each row; then those of offsets, one of each
// step. Then the same of the next 8 rows.
static const int kSliceBytes = 8 * 32;
static const int kSlices = kOwn / 4;  // of a step
static const int kFirstOffset = kChunkDepth / 16 * kSliceBytes;
static const int kPitchX =
    (kFirstOffset + (kOffsets ? kSteps * kSliceBytes : 0) + 1023) / 1024 * 1024;
static const int kFirstX = kRows * kChunk;
static const int kFirstScale = kFirstX + WGMMA_N / 8 * kPitchX;
static const int kFirstFlag = kFirstScale + kGroups * kGroupBytes;
static const int kStageBytes = (kFirstFlag + (kOffsets ? 16 : 0) + 1023) / 1024 * 1024;

// Of each stage: x has come; all of it has, and is in order; everybody has read it.
struct Ring {
  uint8* memory;
  Mbarrier *raw, *full, *read;
};

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

// By one thread. Whole boxes count: zeros stand for what lies outside of the tensors.
template <class SomeArgs>  // which need not have scales
__device__ inline void ask_for_chunk(const SomeArgs& args, const GroupWalk& walk,
                                     const Ring& ring) {
  uint8* const to = ring.memory + walk.stage * kStageBytes;
  const int chunk = walk.first_chunk + walk.chunk, row = walk.unit * kRows;
  Mbarrier *const raw = ring.raw + walk.stage, *const full = ring.full + walk.stage;
  arrive_and_expect(raw, kFewTiles * kFirstOffset);  // first: it has to be put in order
#pragma unroll
  for (int j = 0; j < kFewTiles; ++j) {
    const int at_x[3] = {0, 8 * j, chunk * (kChunkDepth / 64)};
    load_box(to + kFirstX + j * kPitchX, args.map_x, raw, at_x);
  }
  arrive_and_expect(full, kRows * kChunk + kGroups * kGroupBytes);
  const int at[3] = {0, chunk * kPieces, row};
  load_box(to, args.map_weights, full, at);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    load_box(to + kFirstScale, args.map_scales, full, at_scales);
  }
}
// What needs no order, while the launch before may still be writing it: the L2 cache sees that.
template <class SomeArgs>
__device__ inline void prefetch_chunk(const SomeArgs& args, const GroupWalk& walk) {
  const int chunk = walk.first_chunk + walk.chunk, row = walk.unit * kRows;
  const int at[3] = {0, chunk * kPieces, row};
  prefetch_box(args.map_weights, at);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    prefetch_box(args.map_scales, at_scales);
  }
}
// After it has asked for all stages once.
__device__ inline void ask_for_chunks(const Args& args, GroupWalk walk, const Ring& ring) {
#pragma unroll 1
  for (; walk.has_more(args); walk.next()) {
    wait_for(ring.read + walk.stage, walk.parity ^ 1);
    if (threadIdx.x % 32 == 0) ask_for_chunk(args, walk, ring);
    __syncwarp();
  }
  let_next_launch_start();
}

// A block of x, 128 depths of 8 of its rows, are 2048 bytes, which a warp reads and writes again. A
// lane has, of one row, a unit of 8 depths of each of the four lanes that share rows of weights.
// Slice s of a step has pairs 2 s and 2 s + 1 of each lane's packet: 16 bytes of the first (of all
// four lanes), then 16 of the second, exchanged where the swizzle does so.
static const int kBlockBytes = 2048;
static const int kBlocksAlong = kChunkDepth / 128;
static const int kBlocksX = kFewTiles * kBlocksAlong;
static const int kBlocksTogether = kBlocksX > kHelpers - 1 ? 2 : 1;
struct OrderLane {
  uint32 from[4], to;  // in a block

  __device__ OrderLane() {
    const uint32 lane = threadIdx.x % 32, m = lane % 8, step = lane / 8 / kUnits;
    const uint32 u = lane / 8 % kUnits;
#pragma unroll
    for (uint32 t = 0; t < 4; ++t) {
      const uint32 piece = step * (kStepDepth / 8) + t * (kOwn / 8) + u;  // 16 bytes of a row
      from[t] = piece / 8 * 1024 + m * 128 + (piece % 8 ^ m) * 16;
    }
    to = (step * kSlices + 2 * u) * kSliceBytes + m * 32 + m / 4 * 16;
  }
  __device__ void read(const uint8* block, uint4 (&pairs)[4]) const {
#pragma unroll
    for (int t = 0; t < 4; ++t)
      pairs[t] = in_order_of_weights(*(const uint4*)(block + from[t]));
  }
  __device__ void write(uint8* block, const uint4 (&pairs)[4]) const {
    uint8 *const first = block + to, *const second = block + (to ^ 16);
    *(uint4*)first = make_uint4(pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x);
    *(uint4*)second = make_uint4(pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y);
    *(uint4*)(first + kSliceBytes) = make_uint4(pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z);
    *(uint4*)(second + kSliceBytes) = make_uint4(pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w);
  }
};

// By a warp, of 8 rows of x of a step that it has just put in order. Returns whether a sum is not
// finite.
__device__ inline bool add_offsets(const uint8* slices, uint8* to) {
  const uint32 lane = threadIdx.x % 32;
  const uint32 minus = offset_pair<T>(W()) | kMinus, factor[4] = {minus, minus, minus, minus};
  float sums[2][4] = {};
#pragma unroll
  for (int s = 0; s < kSlices; s += 2) {
    uint32 some[4];  // in whatever order of depths
    load_matrices<false>(
        some, slices + (s + lane / 16) * kSliceBytes + lane % 8 * 32 + lane / 8 % 2 * 16);
    const uint32 first[2] = {some[0], some[1]}, second[2] = {some[2], some[3]};
    multiply_add(T(), sums[0], factor, first);
    multiply_add(T(), sums[1], factor, second);
  }
  // Of rows 2 t and 2 t + 1 all lanes t have the sums.
  const float sum = lane / 4 % 2 == 0 ? sums[0][0] + sums[1][0] : sums[0][1] + sums[1][1];
  const uint32 high = __float_as_uint(sum) & 0xffff0000u;
  const float rest = sum - __uint_as_float(high);
  const uint32 middle = __float_as_uint(rest) & 0xffff0000u;
  const uint32 low = __float_as_uint(rest - __uint_as_float(middle));
  if (lane < 8) {
    const uint32 m = lane % 4 * 2 + lane / 4, turned = m / 4 * 16;
    *(uint4*)(to + m * 32 + turned) = make_uint4(high >> 16 | middle, low >> 16, 0u, 0u);
    *(uint4*)(to + m * 32 + (turned ^ 16)) = make_uint4(0u, 0u, 0u, 0u);
  }
  return !(fabsf(sum) < 3e38f);
}

// Two blocks at a time, so that one waits while the other goes on. Returns whether a sum of the
// lane's is not finite.
__device__ inline bool put_in_order(const OrderLane& lane, uint32 warp, uint8* x) {
  bool is_lost = false;
#pragma unroll 1
  for (uint32 first = warp; first < kBlocksX; first += (kHelpers - 1) * kBlocksTogether) {
    uint4 pairs[kBlocksTogether][4];
    uint8* tile[kBlocksTogether];
    uint32 along[kBlocksTogether];
    bool inside[kBlocksTogether];
#pragma unroll
    for (uint32 n = 0; n < kBlocksTogether; ++n) {
      const uint32 number = first + n * (kHelpers - 1);
      inside[n] = n == 0 || number < kBlocksX;
      tile[n] = x + number / kBlocksAlong * kPitchX;
      along[n] = number % kBlocksAlong;
      if (inside[n]) lane.read(tile[n] + along[n] * kBlockBytes, pairs[n]);
    }
    __syncwarp();
#pragma unroll
    for (uint32 n = 0; n < kBlocksTogether; ++n)
      if (inside[n]) lane.write(tile[n] + along[n] * kBlockBytes, pairs[n]);
    if constexpr (kOffsets) {  // a block is a step
      __syncwarp();
#pragma unroll
      for (uint32 n = 0; n < kBlocksTogether; ++n)
        if (inside[n])
          is_lost |= add_offsets(tile[n] + along[n] * kBlockBytes,
                                 tile[n] + kFirstOffset + along[n] * kSliceBytes);
    }
  }
  return is_lost;
}
__device__ inline void order_chunks(const Args& args, GroupWalk walk, const Ring& ring) {
  const OrderLane lane;
  const uint32 warp = threadIdx.x / 32 - kWarps - 1;
#pragma unroll 1
  for (; walk.has_more(args); walk.next()) {
    uint8* const stage = ring.memory + walk.stage * kStageBytes;
    wait_for(ring.raw + walk.stage, walk.parity);
    const bool is_lost = put_in_order(lane, warp, stage + kFirstX);
    if constexpr (kOffsets) {
      const bool any = __any_sync(0xffffffffu, is_lost);
      if (threadIdx.x % 32 == 0)
        ((uint32*)(stage + kFirstFlag))[warp] = any ? 1u : 0u;
    }
    fence_shared_writes();
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(ring.full + walk.stage);
  }
}
