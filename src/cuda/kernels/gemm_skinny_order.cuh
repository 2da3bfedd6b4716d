// Products with few rows by warpgroups (gemm_skinny_group.cuh): x as the second factor of wgmma, in
// the order in which lanes have the weights. A launch of its own makes this image of x once, and
// blocks copy it as it is (gemm_skinny_order_launch.cuh), or warps of each block make it of what
// the copy engine has brought to a stage (gemm_skinny_order_stage.cuh).
//
// The image has, for each chunk of the depth, for each 8 rows of x: slices of 16 depths, 32 bytes
// of each row, swizzled over 32 bytes; then one slice of each step that takes off offsets. Rows and
// depths that x has not are zeros.
//
// Where 4-bit weights are multiplied with their offset (kOffsets), what that adds to the sums of a
// step comes off again by one more slice of x: minus the offset times the sum of x, as three
// numbers of 8 bits. A flag of the chunk tells where that sum is not finite.
#pragma once

#include "lib/ptx_matrix.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkDepth = kChunk * 8 / kBits;
static const bool kOffsets = kScaled && HasOffset<W>::value && ShortFloat<T>::kBias == 127;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kOwn / 4;  // of a step
static const int kFirstOffset = kChunkDepth / 16 * kSliceBytes;
static const bool kOrdersHere = kHelpers > 1;  // in each block
static const int kPitchX = kFirstOffset + (kOffsets ? kSteps * kSliceBytes : 0);
static const int kImageTiles = kColumns / 8;
// A warp (one of kOrderWarps) makes a block: 128 depths of 8 rows.
static const int kBlockBytes = 2048;
static const int kBlocksAlong = kChunkDepth / 128;  // of a chunk
static const int kBlocksX = kImageTiles * kBlocksAlong;
static const int kOrderUnits = kBlocksX;              // that warps of a block have one by one
static const int kFirstFlag = kImageTiles * kPitchX;  // of blocks
static const int kImageBytes = kFirstFlag + (kOffsets ? 128 : 0);
static_assert(kBlocksX <= 32);

// A lane has, of one row, a unit of 8 depths of each of the four lanes that share rows of weights.
// Slice s of a step has pairs 2 s and 2 s + 1 of each lane's packet: 16 bytes of the first (of all
// four lanes), then 16 of the second, exchanged where the swizzle does so.
struct OrderLane {
  int row, step, unit;

  __device__ OrderLane() {
    const int lane = threadIdx.x % 32;
    row = lane % 8;
    step = lane / 8 / kUnits;
    unit = lane / 8 % kUnits;
  }
  // Of a block, where lane t of those four has its depths.
  __device__ int depth_of(int t) const { return step * kStepDepth + t * kOwn + unit * 8; }
  __device__ void write(uint8* block, const uint4 (&pairs)[4]) const {
    const uint32 to = (step * kSlices + 2 * unit) * kSliceBytes + row * 32 + row / 4 * 16;
    uint8 *const first = block + to, *const second = block + (to ^ 16);
    *(uint4*)first = make_uint4(pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x);
    *(uint4*)second = make_uint4(pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y);
    *(uint4*)(first + kSliceBytes) = make_uint4(pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z);
    *(uint4*)(second + kSliceBytes) = make_uint4(pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w);
  }
};

// By a warp, of 8 rows of x of a step in shared memory. Returns whether a sum is not finite.
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
