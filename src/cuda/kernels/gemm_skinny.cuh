// Skinny GEMM, y[m][n] = x[m][k] * weights[n][k] with M <= 32: bound by reading the weights once.
//
// A CTA processes kRows rows of weights and a slice of K at a time, in steps. Each thread loads its
// own packets through a cp.async pipeline of kSteps stages (kSteps - 1 in flight) and waits for its
// own copies only: no CTA barrier per step. The first steps of the next rows follow the last steps
// of these. Where x does not fit in shared memory as a whole, it is double-buffered in phases of
// kPhase steps. After the last step of its rows the CTA reduces accumulators over its warps, then
// over the cluster (split-K).
#include "lib/ptx_cp_async.cuh"

static const int kStepBytes = kThreads * kPackets * kPacketBytes;
static const int kPhaseSteps = kPhase * kWarpsK;  // over all warps that share rows
static const int kPhaseUnits = kPhaseSteps * kUnits * kM * 4;

// A work unit is kRows rows of one batch. CTA (or cluster) i processes units i, i + grid, ...
__device__ inline void locate_unit(const Args& args, int64 unit, Index first_k, Coord& coord) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if constexpr (kRank > 2) {
    int64 batch = unit / args.groups;
    unit %= args.groups;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      coord.batch[axis] = (Index)(batch % args.batch_extent[axis]);
      batch /= args.batch_extent[axis];
    }
  }
  coord.first_row = (Index)unit * kRows;
  coord.row = coord.first_row + warp % kWarpsN * kWarpRows + lane / 4 * (kKMajor ? 1 : kElements);
  coord.k = first_k + warp / kWarpsN * kStepK + lane % 4 * kOwn;
}

// Iterates over the packets of this lane in global memory.
template <bool kAligned>
struct Weights {
  const uint8* first;  // packet 0 of the next step
  int64 next_packet, next_step;
  Index row, k;

  __device__ Weights(const Args& args) {
    next_packet = (kKMajor ? 8 * args.row_stride : args.k_stride) * kBits / 8;
    next_step = kStepK * kWarpsK * args.k_stride * kBits / 8;
  }
  __device__ void start(const Args& args, const Coord& coord) {
    row = coord.row;
    k = coord.k;
    int64 at = args.first_weight + row * args.row_stride + k * args.k_stride;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at += coord.batch[axis] * args.batch_stride[axis];
    first = (const uint8*)args.weights + at * kBits / 8;
  }
  // Starts copies of the next step's packets to `to`, zero-filled out of bounds.
  __device__ void copy_to(const Args& args, uint8* to) {
    const int within = (int)(kKMajor ? (Index)args.k - k : (Index)args.n - row);
    const int bytes = min(max(within, 0), kElements) * kBits / 8;
    const Index packets = kKMajor ? ((Index)args.n - row + 7) / 8 : (Index)args.k - k;
    const uint8* from = first;
#pragma unroll
    for (int p = 0; p < kPackets; ++p, from += next_packet)
      copy_packet(to + p * kThreads * kPacketBytes, from, p < packets ? bytes : 0);
    first += next_step;
    k += kStepK * kWarpsK;
  }
  __device__ static void copy_packet(uint8* to, const uint8* from, int bytes) {
    if constexpr (kAligned && kCopyBytes >= 4) {
#pragma unroll
      for (int i = 0; i < kPacketBytes; i += kCopyBytes)
        cp_async_zfill<kCopyBytes>(to + i, from + i, i < bytes ? kCopyBytes : 0);
    } else {
#pragma unroll 1
      for (int i = 0; i < kPacketBytes; ++i) to[i] = i < bytes ? from[i] : (uint8)0;
    }
  }
};

// The row of x and the first k, relative to the phase, of 16-byte unit i of a phase.
struct UnitCoord {
  int m, k;
  __device__ UnitCoord(int i)
      : m(i / 4 % kM), k(i / (4 * kM * kUnits) * kStepK + i % 4 * kOwn +
                               i / (4 * kM) % kUnits * kUnit) {}
};
// Stages x of a phase in shared memory: by cp.async, or through x_program and registers.
template <bool kAligned>
__device__ inline void stage_x(const Args& args, const Coord& coord, Index phase_k,
                               uint4* units) {
#pragma unroll 2
  for (int i = threadIdx.x; i < kPhaseUnits; i += kThreads) {
    const UnitCoord unit(i);
    const Index k = phase_k + unit.k;
    if constexpr (kAligned && kCopiesX) {
      int64 at = unit.m * args.x_row_stride + k;
#pragma unroll
      for (int axis = 0; axis < kRank - 2; ++axis)
        at += coord.batch[axis] * args.x_batch_stride[axis];
      cp_async_zfill<16>(units + i, (const typename T::Word*)args.x + at,
                             k < (Index)args.k ? 16 : 0);
    } else {
      constexpr int kVector = kAligned ? kVectorX : 1;
      Index at[kRank];
#pragma unroll
      for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = coord.batch[axis];
      at[kRank - 2] = unit.m;
      R elements[kUnit];
#pragma unroll
      for (int first = 0; first < kUnit; first += kVector) {
        at[kRank - 1] = k + first;
        R some[kVector];
        fill((R)0, some);
        if (k + first < (Index)args.k) x_program<kVector>(args, at, some);
#pragma unroll
        for (int l = 0; l < kVector; ++l) elements[first + l] = some[l];
      }
      units[i] = pack_unit(elements);
    }
  }
}
// Stages the block scales of the weights of a phase.
static const int kScaleGroups =
    kScaled ? (kPhaseSteps * kStepK + kScaleBlock - 1) / kScaleBlock + 1 : 0;
template <class Number>
__device__ inline void stage_scales(Number t, const Args& args, const Coord& coord,
                                    Index phase_k, uint16* scales) {
  if constexpr (kScaled) {
    Index at[kRank];
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = coord.batch[axis];
#pragma unroll 4
    for (int i = threadIdx.x; i < kScaleGroups * kRows; i += kThreads) {
      const Index row = coord.first_row + i % kRows;
      const Index k = (phase_k / kScaleBlock + i / kRows) * kScaleBlock;
      at[kRank - 2] = kKMajor ? row : k;
      at[kRank - 1] = kKMajor ? k : row;
      R scale[1] = {0};
      if (row < (Index)args.n && k < (Index)args.k)
        weight_scale<1>(args, at, scale);
      scales[i] = narrow(t, scale[0]);
    }
  }
}
// Permutes the units that this thread has copied, after its own copies have landed.
template <bool kAligned>
__device__ inline void permute_x(uint4* units) {
  if constexpr (kAligned && kCopiesX && kReorders) {
#pragma unroll 2
    for (int i = threadIdx.x; i < kPhaseUnits; i += kThreads)
      units[i] = permute_like_weights(units[i]);
  }
}

// The kSplit CTAs of a cluster share rows and split K.
template <int kSplit, bool kAligned>
__device__ inline void multiply(const Args& args) {
  uint8* const memory = shared_memory();
  uint8* const pipeline = memory + threadIdx.x * kPacketBytes;
  uint4* const x = (uint4*)(memory + kSteps * kStepBytes);
  float* const acc = (float*)(x + kBuffersX * kPhaseUnits);
  uint16* const scales = (uint16*)(acc + kWarpsK * kM * kPitch);
  const int warp_n = threadIdx.x / 32 % kWarpsN, warp_k = threadIdx.x / 32 / kWarpsN;
  const int rank = blockIdx.x % kSplit;
  // A round is one step of each warp along K.
  const int all_rounds = (int)args.rounds, most = (all_rounds + kSplit - 1) / kSplit;
  const int rounds = min(most, all_rounds - rank * most);
  const Index first_k = (Index)rank * most * kStepK * kWarpsK;
  const int first = blockIdx.x / kSplit, every = gridDim.x / kSplit, units = (int)args.units;

  // The next step to copy: round `to_come` of the unit at `ahead`.
  Coord ahead;
  int unit_ahead = first, to_come = 0, stage_ahead = 0;
  Weights<kAligned> weights(args);
  const auto copy_step = [&] {
    if (unit_ahead < units) {
      if (to_come == 0) {
        locate_unit(args, unit_ahead, first_k, ahead);
        weights.start(args, ahead);
      }
      weights.copy_to(args, pipeline + stage_ahead * kStepBytes);
      if (++to_come == rounds) {
        to_come = 0;
        unit_ahead += every;
      }
    }
    stage_ahead = stage_ahead + 1 == kSteps ? 0 : stage_ahead + 1;
  };

  Coord coord;
  copy_step();
  locate_unit(args, first, first_k, coord);
  stage_x<kAligned>(args, coord, first_k, x);
  cp_async_commit_group();
#pragma unroll 1
  for (int s = 1; s < kSteps - 1; ++s) {
    copy_step();
    cp_async_commit_group();
  }
  stage_scales(T(), args, coord, first_k, scales);

  int stage = 0, phase = 0;
#pragma unroll 1
  for (int unit = first; unit < units; unit += every) {
    locate_unit(args, unit, first_k, coord);
    Accumulators accumulators;
    int phase_step = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      if (phase_step == 0 && (kBuffersX > 1 || kBuffersScales > 1 || unit == first)) {
        cp_async_wait_group<kSteps - 2>();
        if (kBuffersX > 1 || unit == first)
          permute_x<kAligned>(x + phase % kBuffersX * kPhaseUnits);
        __syncthreads();
        if constexpr (kBuffersX > 1 || kBuffersScales > 1) {
          // The next phase of this unit, or the first phase of the next unit.
          const bool here = round + kPhase < rounds;
          if (here || unit + every < units) {
            Coord next;
            locate_unit(args, here ? unit : unit + every, first_k, next);
            const Index k =
                first_k + (Index)(here ? round + kPhase : 0) * kStepK * kWarpsK;
            if constexpr (kBuffersX > 1)
              stage_x<kAligned>(args, next, k, x + (phase + 1) % kBuffersX * kPhaseUnits);
            if constexpr (kBuffersScales > 1)
              stage_scales(T(), args, next, k,
                           scales + (phase + 1) % kBuffersScales * kScaleGroups * kRows);
          }
        }
      }
      copy_step();
      cp_async_commit_group();
      cp_async_wait_group<kSteps - 1>();
      Words packets[kPackets];
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
        packets[p].piece =
            *(const Piece*)(pipeline + stage * kStepBytes + p * kThreads * kPacketBytes);
      const uint4* const units_of_step =
          x + phase % kBuffersX * kPhaseUnits +
          (phase_step * kWarpsK + warp_k) * kUnits * kM * 4 + threadIdx.x % 4;
      const Scales of_phase = {
          scales + phase % kBuffersScales * kScaleGroups * kRows + warp_n * kWarpRows,
          (first_k + (Index)(round - phase_step) * kStepK * kWarpsK) / kScaleBlock};
      accumulators.template add<kAligned>(
          args, coord, packets, [&](int u, int m) { return units_of_step[(u * kM + m) * 4]; },
          of_phase);
      coord.k += kStepK * kWarpsK;
      stage = stage + 1 == kSteps ? 0 : stage + 1;
      if (++phase_step == kPhase || round + 1 == rounds) {
        phase_step = 0;
        ++phase;
      }
    }
    finish_unit<kSplit, kAligned>(args, coord, accumulators, acc, rank);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_skinny(const __grid_constant__ Args args) {
  multiply<kClusterBlocks, true>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm_skinny_elements(const __grid_constant__ Args args) {
  multiply<1, false>(args);
}
