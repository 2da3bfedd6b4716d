// Skinny GEMM with TMA bulk loads (sm_90 on), y[m][n] = x[m][k] * weights[n][k]: both operands are
// K-major, and rows of weights are multiples of 64 bytes.
//
// A CTA processes kRows rows of weights and a slice of K at a time, in chunks: kChunk bytes of each
// row, the same k of x, and the scales of these weights. Chunks go through a pipeline of kStages
// stages. Each warp issues the loads of its share of the rows and waits for the whole chunk. A warp
// that has read a chunk arrives on its empty barrier; when all warps have, it issues the next load
// into that stage. Weights below 16 bits, which take longer to multiply, defer that by one chunk,
// so that warps need not run in lockstep. The first chunks of the next unit follow the last of
// this.
#include "lib/pipeline.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_tma.cuh"

static const int kWarps = kWarpsN * kWarpsK;
static const int kRowsTogether = kRows <= 8 * kWarps ? 8 : 4;  // row loads per unrolled iteration
static const int kSteps = kChunk / kStepBytes / kWarpsK;       // of a warp in a chunk
static const int kMaxTogether = kTilesM == 1 ? 8 : 4;       // row tiles, bound by registers
static const int kStepsTogether =
    kSteps * kTiles <= kMaxTogether ? kSteps : kMaxTogether / kTiles;
static const bool kDefersLoads = kBits < 16;
static const int kChunkK = kChunk * 8 / kBits;
static const int kChunkX = kChunkK * 2;
static const int kGroups = kScaled ? kChunkK / kScaleBlock : 0;
// Eight lanes read 16 bytes at four offsets of two rows: the pitch puts these in different banks.
// With 4-bit weights, lanes t and t + 2 read x from the same banks: with more than 8 rows of x,
// lanes 2 and 3 therefore swap the halves of a packet, and packets are read 8 bytes at a time.
static const bool kSwapsHalves = kBits == 4 && kTilesM > 1;
static const int kPitchW = kChunk + (128 + (kSwapsHalves ? 32 : 64) - kChunk % 128) % 128;
static const int kPitchX = kBits < 16 ? kChunkX + 16 : kPitchW;
static const int kGroupBytes = kRows * (int)sizeof(S::Word);
// A stage holds weights, then x, then scales.
static const int kFirstX = kRows * kPitchW;
static const int kFirstScale = kFirstX + kM * kPitchX;
static const int kStageBytes = kFirstScale + kGroups * kGroupBytes;
static const int kReductionBytes = kWarpsK * kRowsPerPass * kPitch * 4;
// Bytes before the barriers. The reduction aliases the stages unless these prefetch the next unit.
static const int kAllBytes = kOwnReductionSmem ? kStages * kStageBytes + kReductionBytes
                             : kStages * kStageBytes > kReductionBytes ? kStages* kStageBytes
                                                                       : kReductionBytes;

// A work unit is kRows rows of one batch. CTA (or cluster) i processes units i, i + grid, ...
__device__ inline void locate_unit(const Args& args, int unit, Coord& coord) {
  int group = unit;
  if constexpr (kRank > 2) {
    int batch = unit / (int)args.groups;
    group = unit % (int)args.groups;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      coord.batch[axis] = (Index)(batch % (int)args.batch_extent[axis]);
      batch /= (int)args.batch_extent[axis];
    }
  }
  coord.first_row = (Index)group * kRows;
}

// Issues the loads of the chunks of a CTA, one after the other.
struct ChunkProducer {
  int unit, every, first_chunk, chunks;
  int chunk, stage, warp;  // next chunk and stage; this warp

  __device__ bool has_more(const Args& args) const { return unit < (int)args.units; }
  __device__ void next(const Args& args) {
    if (has_more(args) && ++chunk == chunks) {
      chunk = 0;
      unit += every;
    }
    if (!has_more(args)) launch_dependent_grids();
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }

  // Both are called by all threads. A warp issues the loads of every kWarps-th row of weights,
  // counted from the first warp, and of x and scales, counted from the last, which balances warps.
  // Thread 0 expects all bytes; the phase cannot complete before it has arrived.
  __device__ void load_weights(const Args& args, uint8* memory, Mbarrier* barriers) const {
    if (!has_more(args)) return;
    const Chunk here(args, *this);
    Mbarrier* const full = barriers + stage;
    if (threadIdx.x == 0)
      arrive_and_expect_tx(full, here.rows * here.bytes + kM * here.x_bytes() +
                                  here.groups() * here.scale_bytes());
    int64 row = args.first_weight + (here.coord.first_row + warp) * args.row_stride;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis)
      row += here.coord.batch[axis] * args.batch_stride[axis];
    const uint8* from = (const uint8*)args.weights + row * kBits / 8 + here.first;
    const int64 next_row = args.row_stride * kWarps * kBits / 8;
    uint8* to = memory + stage * kStageBytes + warp * kPitchW;
    // No bounds check where all rows exist: 6 instructions per row instead of 13.
    constexpr int kMost = (kRows + kWarps - 1) / kWarps;
    const int own = (here.rows - warp + kWarps - 1) / kWarps;
    if (own == kMost) {
#pragma unroll kRowsTogether
      for (int n = 0; n < kMost; ++n, from += next_row, to += kWarps * kPitchW)
        load_bytes(to, from, here.bytes, full);
    } else {
#pragma unroll 1
      for (int n = 0; n < own; ++n, from += next_row, to += kWarps * kPitchW)
        load_bytes(to, from, here.bytes, full);
    }
  }
  __device__ void load_x_and_scales(const Args& args, uint8* memory, Mbarrier* barriers) const {
    if (!has_more(args)) return;
    const Chunk here(args, *this);
    Mbarrier* const full = barriers + stage;
    const int back = kWarps - 1 - warp;
    int64 x_row = back * args.x_row_stride;
    int64 scale =
        here.coord.first_row + ((first_chunk + chunk) * kGroups + back) * args.scale_stride;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) {
      x_row += here.coord.batch[axis] * args.x_batch_stride[axis];
      scale += here.coord.batch[axis] * args.scale_batch_stride[axis];
    }
    uint8* const to = memory + stage * kStageBytes;
    const uint8* from_x = (const uint8*)args.x + x_row * 2 + here.first * 16 / kBits;
    const int64 next_x = args.x_row_stride * kWarps * 2;
#pragma unroll
    for (int n = 0; n < (kM + kWarps - 1) / kWarps; ++n, from_x += next_x)
      if ((n + 1) * kWarps <= kM || back + n * kWarps < kM)
        load_bytes(to + kFirstX + (back + n * kWarps) * kPitchX, from_x, here.x_bytes(), full);
    if constexpr (kScaled) {
      const typename S::Word* from_scale = (const typename S::Word*)args.scales + scale;
#pragma unroll 1
      for (int i = back; i < here.groups(); i += kWarps, from_scale += args.scale_stride * kWarps)
        load_bytes(to + kFirstScale + i * kGroupBytes, from_scale, here.scale_bytes(), full);
    }
  }

 private:
  struct Chunk {
    Coord coord;
    int64 first;      // byte offset in a row
    int rows, bytes;  // rows, and bytes of each

    __device__ Chunk(const Args& args, const ChunkProducer& producer) {
      locate_unit(args, producer.unit, coord);
      first = (int64)(producer.first_chunk + producer.chunk) * kChunk;
      rows = min(kRows, (int)args.n - (int)coord.first_row);
      bytes = kWhole ? kChunk : (int)min((int64)kChunk, args.row_bytes - first);
    }
    __device__ int x_bytes() const { return bytes * 16 / kBits; }
    __device__ int groups() const {
      return kScaled ? (x_bytes() / 2 + kScaleBlock - 1) / kScaleBlock : 0;
    }
    __device__ int scale_bytes() const { return rows * (int)sizeof(S::Word); }
  };
};

// The lane's addresses of weights and x of one step in a stage.
struct Step {
  const uint8 *weights, *x;
  int warp_row, group;  // first row of the warp; scale group of the step
  int turned;           // byte offset in x of the half that is read first: 0 or 32

  __device__ Step(const uint8* stage, int step) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    warp_row = threadIdx.x / 32 % kWarpsN * kWarpRows;
    group = step * kStepK / kScaleBlock;
    weights = stage + (warp_row + g) * kPitchW + step * kStepBytes + t * kPacketBytes;
    x = stage + kFirstX + step * (kStepK * 2) + t * (kOwn * 2);
    turned = kSwapsHalves ? t / 2 * 32 : 0;
  }
  __device__ Words packet(int p) const {
    Words words;
    const uint8* const from = weights + 8 * p * kPitchW;
    if constexpr (kSwapsHalves) {
      const uint2 first = *(const uint2*)(from + turned / 4);
      const uint2 second = *(const uint2*)(from + 8 - turned / 4);
      words.piece = make_uint4(first.x, first.y, second.x, second.y);
    } else {
      words.piece = *(const Piece*)from;
    }
    return words;
  }
  __device__ uint4 unit(int u, int m) const {
    const int half = !kSwapsHalves || u < kUnits / 2 ? turned : -turned;
    return permute_like_weights(*(const uint4*)(x + m * kPitchX + u * 16 + half));
  }
};

// Multiplies step `step` of a chunk. `invalid` becomes NaN where the weights' offset cannot be
// subtracted again.
__device__ inline void add_step(const Args& args, const Coord& coord, const uint8* stage, int step,
                                Accumulators& accumulators, float& invalid) {
  const Step here(stage, step);
  Words packets[kPackets];
#pragma unroll
  for (int p = 0; p < kPackets; ++p) packets[p] = here.packet(p);
  const auto unit = [&](int u, int m) { return here.unit(u, m); };
  OffsetAccumulators offset;
  if constexpr (kScaled) {
    Accumulators own;
    own.template add<true, kHasOffset>(args, coord, packets, unit, Scales{}, offset);
    if constexpr (kHasOffset) invalid = offset.nan_if_nonfinite(invalid);
    const typename S::Word* const scales =
        (const typename S::Word*)(stage + kFirstScale + here.group * kGroupBytes) + here.warp_row;
    accumulators.add_scaled(own, offset,
                            [&](int, int row) { return (float)widen(S(), scales[row]); });
  } else {
    accumulators.template add<true, false>(args, coord, packets, unit, Scales{}, offset);
  }
}

// Recomputes all chunks of the CTA from `first` on from global memory, without an offset: for x
// with infinities or NaN.
__device__ inline void recompute(const Args& args, const Coord& coord, int first, int chunks,
                                 Accumulators& accumulators) {
  const Lane lane(args, coord);
  const int last = min((first + chunks) * kSteps, lane.steps);
#pragma unroll 1
  for (int step = first * kSteps; step < last; ++step) {
    Words packets[kPackets];
    typename S::Word scales[kPackets];
    load_step(args, lane, step, packets, scales);
    multiply_step(args, coord, lane, step, packets, scales, accumulators);
  }
}

// Prefetches the epilogue operands of a unit into L2.
__device__ inline void prefetch_epilogue(const Args& args, const Coord& coord, int rank) {
  if constexpr (kOperands > 0) {
    constexpr int kShare = kRows / kClusterBlocks, kAcross = kShare / kVectorY;
    Index at[kRank];
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = coord.batch[axis];
#pragma unroll 1
    for (int i = threadIdx.x; i < kAcross * kM; i += kThreads) {
      at[kRank - 2] = i / kAcross;
      at[kRank - 1] = coord.first_row + i % kAcross * kVectorY + rank * kShare;
      if (at[kRank - 1] < (Index)args.n) prefetch_operands(args, at);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_skinny_tma(const __grid_constant__ Args args) {
  uint8* const memory = shared_memory();
  float* const acc = (float*)(memory + (kOwnReductionSmem ? kStages * kStageBytes : 0));
  BufferPipeline<kStages, kStageBytes> pipeline;
  pipeline.begin(memory, (Mbarrier*)(memory + kAllBytes));
  Mbarrier* const full = pipeline.full;
  if (threadIdx.x == 0) {
    pipeline.init(1, kThreads);
    fence_barriers();
  }
  __syncthreads();

  const int rank = blockIdx.x % kClusterBlocks;
  const int all_chunks = (int)args.rounds;
  const int most = (all_chunks + kClusterBlocks - 1) / kClusterBlocks;
  const int first_chunk = rank * most, chunks = min(most, all_chunks - first_chunk);
  const int first = blockIdx.x / kClusterBlocks, every = gridDim.x / kClusterBlocks;
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);  // the same for all lanes
  ChunkProducer producer = {first, every, first_chunk, chunks, 0, 0, warp};
  const int early = stages_before_pdl_wait(args);
  ChunkProducer of_weights = producer;
#pragma unroll 1
  for (int s = 0; s < early; ++s, of_weights.next(args))
    of_weights.load_weights(args, memory, full);
  wait_on_dependent_grids();
#pragma unroll 1
  for (int s = 0; s < kStages; ++s, producer.next(args)) {
    if (s >= early) producer.load_weights(args, memory, full);
    producer.load_x_and_scales(args, memory, full);
  }

  const int warp_k = threadIdx.x / 32 / kWarpsN;
  int free = -1, free_phase = 0;  // the stage to refill next, if kDefersLoads
#pragma unroll 1
  for (int unit = first; unit < (int)args.units; unit += every) {
    Coord coord;
    locate_unit(args, unit, coord);
    prefetch_epilogue(args, coord, rank);
    Accumulators accumulators;
    float invalid = 0;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint8* const here = pipeline.buffer();
      const int64 rest = args.row_bytes - (int64)(first_chunk + chunk) * kChunk;
      const int steps = kWhole ? 0 : (int)(min((int64)kChunk, rest) / kStepBytes);
      pipeline.consumer_wait();
#pragma unroll kStepsTogether
      for (int s = 0; s < kSteps; ++s) {
        const int step = s * kWarpsK + warp_k;
        if (kWhole || step < steps) add_step(args, coord, here, step, accumulators, invalid);
      }
      arrive(pipeline.empty + pipeline.stage);
      if ((!kDefersLoads || free >= 0) && producer.has_more(args)) {
        wait_for(pipeline.empty + (kDefersLoads ? free : pipeline.stage),
                 kDefersLoads ? free_phase : pipeline.phase);
        producer.load_weights(args, memory, full);
        producer.load_x_and_scales(args, memory, full);
        producer.next(args);
      }
      free = pipeline.stage;
      free_phase = pipeline.phase;
      pipeline.next();
    }
    if constexpr (kScaled && kHasOffset) {
      if (__any_sync(0xffffffffu, invalid != 0.f)) {
        accumulators = Accumulators();
        recompute(args, coord, first_chunk, chunks, accumulators);
      }
    }
    if constexpr (!kOwnReductionSmem) __syncthreads();  // the reduction aliases the stages
    finish_unit<kClusterBlocks, true>(args, coord, accumulators, acc, rank);
  }
}
