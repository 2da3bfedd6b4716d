// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): x as operand B of wgmma, repacked so that
// its K order matches the registers that hold the weights. A pre-pass launch repacks x once
// (gemm_skinny_repack_prepass.cuh), or warps of each CTA repack it in the stages that TMA fills
// (gemm_skinny_repack_in_cta.cuh).
//
// Packed layout: [chunk][8 rows of x][slice of 16 k][row: 32 bytes], swizzled over 32 bytes. Rows
// and k past the end of x are zero.
#pragma once

static const int kStepBytes = 4 * kPacketBytes;  // of a row, per step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkK = kChunk * 8 / kBits;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kOwn / 4;  // of a step
static const bool kRepacksInCta = kHelpers > 1;  // else in a pre-pass launch
static const int kPitchX = kChunkK / 16 * kSliceBytes;
static const int kPackedXTiles = kColumns / 8;
// One of kRepackWarps warps repacks a block: 128 k of 8 rows.
static const int kBlockBytes = 2048;
static const int kBlocksAlong = kChunkK / 128;  // of a chunk
static const int kBlocksX = kPackedXTiles * kBlocksAlong;
static const int kRepackUnits = kBlocksX;  // work items of the repack warps of a CTA
static const int kPackedXBytes = kPackedXTiles * kPitchX;

// A lane repacks, of one row, a unit of 8 k of each of the four lanes t of the weights. Slice s of
// a step holds pairs 2 s and 2 s + 1 of each lane's packet: 16 bytes of the first pairs of all four
// lanes, then 16 bytes of the second; the swizzle exchanges the two halves in every other 4 rows.
struct RepackLane {
  int row, step, unit;

  __device__ RepackLane() {
    const int lane = threadIdx.x % 32;
    row = lane % 8;
    step = lane / 8 / kUnits;
    unit = lane / 8 % kUnits;
  }
  // First k, within a block, of the unit of lane t.
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
