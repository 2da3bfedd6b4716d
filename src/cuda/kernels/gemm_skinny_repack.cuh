// Products with few rows by warpgroups (gemm_skinny_warpgroup.cuh): x as the second factor of wgmma, in
// the order in which lanes have the weights. A launch of its own makes this image of x once, and
// blocks copy it as it is (gemm_skinny_repack_prepass.cuh), or warps of each block make it of what
// the copy engine has brought to a stage (gemm_skinny_repack_in_cta.cuh).
//
// The image has, for each chunk of the depth, for each 8 rows of x: slices of 16 depths, 32 bytes
// of each row, swizzled over 32 bytes. Rows and depths that x has not are zeros.
#pragma once

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkK = kChunk * 8 / kBits;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kOwn / 4;  // of a step
static const bool kRepacksInCta = kHelpers > 1;  // in each block
static const int kPitchX = kChunkK / 16 * kSliceBytes;
static const int kPackedXTiles = kColumns / 8;
// A warp (one of kRepackWarps) makes a block: 128 depths of 8 rows.
static const int kBlockBytes = 2048;
static const int kBlocksAlong = kChunkK / 128;  // of a chunk
static const int kBlocksX = kPackedXTiles * kBlocksAlong;
static const int kRepackUnits = kBlocksX;  // that warps of a block have one by one
static const int kPackedXBytes = kPackedXTiles * kPitchX;

// A lane has, of one row, a unit of 8 depths of each of the four lanes that share rows of weights.
// Slice s of a step has pairs 2 s and 2 s + 1 of each lane's packet: 16 bytes of the first (of all
// four lanes), then 16 of the second, exchanged where the swizzle does so.
struct RepackLane {
  int row, step, unit;

  __device__ RepackLane() {
    const int lane = threadIdx.x % 32;
    row = lane % 8;
    step = lane / 8 / kUnits;
    unit = lane / 8 % kUnits;
  }
  // Of a block, where lane t of those four has its depths.
  __device__ int k_of(int t) const { return step * kStepK + t * kOwn + unit * 8; }
  __device__ void write(uint8* block, const uint4 (&pairs)[4]) const {
    const uint32 to = (step * kSlices + 2 * unit) * kSliceBytes + row * 32 + row / 4 * 16;
    uint8 *const first = block + to, *const second = block + (to ^ 16);
    *(uint4*)first = make_uint4(pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x);
    *(uint4*)second = make_uint4(pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y);
    *(uint4*)(first + kSliceBytes) = make_uint4(pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z);
    *(uint4*)(second + kSliceBytes) = make_uint4(pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w);
  }
};
