// y[few][many] = x[few][depth] * weights[many][depth], few rows: bound by reading the weights once.
//
// A block has kRows rows of weights at a time and a part of the depth, in steps. Each thread copies
// its own packets of the steps to come to a ring in shared memory, kSteps - 1 of them on the way at
// a time, and waits for nobody else; after the last step of some rows come the first of the next. x
// is in shared memory for a phase of kPhase steps, where it does not fit for all of them; the next
// phase is on the way meanwhile. At the end of its rows, warps add their sums, then blocks of a
// cluster.
#include "lib/ptx_async.cuh"

static const int kStepBytes = kThreads * kPackets * kPacketBytes;
static const int kPhaseSteps = kPhase * kWarpsK;  // of all warps with the same rows
static const int kPhaseUnits = kPhaseSteps * kUnits * kFew * 4;

// Rows of blocks and batches are units; a block takes every n-th of them, n blocks (or clusters)
// being there.
__device__ inline void place_unit(const Args& args, int64 unit, Index first_depth, Place& place) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if constexpr (kRank > 2) {
    int64 batch = unit / args.groups;
    unit %= args.groups;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      place.batch[axis] = (Index)(batch % args.batch_extent[axis]);
      batch /= args.batch_extent[axis];
    }
  }
  place.first_row = (Index)unit * kRows;
  place.row = place.first_row + warp % kWarpsN * kWarpRows + lane / 4 * (kAlong ? 1 : kElements);
  place.depth = first_depth + warp / kWarpsN * kStepDepth + lane % 4 * kOwn;
}

// The lane's packets in memory.
template <bool kAligned>
struct Weights {
  const uint8* first;  // packet 0 of the next step
  int64 next_packet, next_step;
  Index row, depth;

  __device__ Weights(const Args& args) {
    next_packet = (kAlong ? 8 * args.row_stride : args.depth_stride) * kBits / 8;
    next_step = kStepDepth * kWarpsK * args.depth_stride * kBits / 8;
  }
  __device__ void start(const Args& args, const Place& place) {
    row = place.row;
    depth = place.depth;
    int64 at = args.first_weight + row * args.row_stride + depth * args.depth_stride;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at += place.batch[axis] * args.batch_stride[axis];
    first = (const uint8*)args.weights + at * kBits / 8;
  }
  // Copies the packets of the next step to `to`; what lies outside of the matrix becomes 0.
  __device__ void copy_to(const Args& args, uint8* to) {
    const int within = (int)(kAlong ? (Index)args.depth - depth : (Index)args.many - row);
    const int bytes = min(max(within, 0), kElements) * kBits / 8;
    const Index packets = kAlong ? ((Index)args.many - row + 7) / 8 : (Index)args.depth - depth;
    const uint8* from = first;
#pragma unroll
    for (int p = 0; p < kPackets; ++p, from += next_packet)
      copy_packet(to + p * kThreads * kPacketBytes, from, p < packets ? bytes : 0);
    first += next_step;
    depth += kStepDepth * kWarpsK;
  }
  __device__ static void copy_packet(uint8* to, const uint8* from, int bytes) {
    if constexpr (kAligned && kCopyBytes >= 4) {
#pragma unroll
      for (int i = 0; i < kPacketBytes; i += kCopyBytes)
        copy_async_filled<kCopyBytes>(to + i, from + i, i < bytes ? kCopyBytes : 0);
    } else {
#pragma unroll 1
      for (int i = 0; i < kPacketBytes; ++i) to[i] = i < bytes ? from[i] : (uint8)0;
    }
  }
};

// Unit i of a phase: its row of x and first depth, from that of the phase on.
struct UnitPlace {
  int m, depth;
  __device__ UnitPlace(int i)
      : m(i / 4 % kFew), depth(i / (4 * kFew * kUnits) * kStepDepth + i % 4 * kOwn +
                               i / (4 * kFew) % kUnits * kUnit) {}
};
// Puts x of a phase where it belongs, or on its way there.
template <bool kAligned>
__device__ inline void start_x(const Args& args, const Place& place, Index phase_depth,
                               uint4* units) {
#pragma unroll 2
  for (int i = threadIdx.x; i < kPhaseUnits; i += kThreads) {
    const UnitPlace unit(i);
    const Index depth = phase_depth + unit.depth;
    if constexpr (kAligned && kCopiesX) {
      int64 at = unit.m * args.x_row_stride + depth;
#pragma unroll
      for (int axis = 0; axis < kRank - 2; ++axis)
        at += place.batch[axis] * args.x_batch_stride[axis];
      copy_async_filled<16>(units + i, (const typename T::Word*)args.x + at,
                             depth < (Index)args.depth ? 16 : 0);
    } else {
      constexpr int kVector = kAligned ? kVectorX : 1;
      Index at[kRank];
#pragma unroll
      for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = place.batch[axis];
      at[kRank - 2] = unit.m;
      R numbers[kUnit];
#pragma unroll
      for (int first = 0; first < kUnit; first += kVector) {
        at[kRank - 1] = depth + first;
        R some[kVector];
        fill((R)0, some);
        if (depth + first < (Index)args.depth) x_program<kVector>(args, at, some);
#pragma unroll
        for (int l = 0; l < kVector; ++l) numbers[first + l] = some[l];
      }
      units[i] = unit_of(numbers);
    }
  }
}
// The same for scales of blocks of weights.
static const int kScaleGroups =
    kScaled ? (kPhaseSteps * kStepDepth + kScaleBlock - 1) / kScaleBlock + 1 : 0;
template <class Number>
__device__ inline void start_scales(Number t, const Args& args, const Place& place,
                                    Index phase_depth, uint16* scales) {
  if constexpr (kScaled) {
    Index at[kRank];
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = place.batch[axis];
#pragma unroll 4
    for (int i = threadIdx.x; i < kScaleGroups * kRows; i += kThreads) {
      const Index row = place.first_row + i % kRows;
      const Index depth = (phase_depth / kScaleBlock + i / kRows) * kScaleBlock;
      at[kRank - 2] = kAlong ? row : depth;
      at[kRank - 1] = kAlong ? depth : row;
      R scale[1] = {0};
      if (row < (Index)args.many && depth < (Index)args.depth)
        weight_scale<1>(args, at, scale);
      scales[i] = narrow(t, scale[0]);
    }
  }
}
// After the thread's own copies have arrived.
template <bool kAligned>
__device__ inline void settle_x(uint4* units) {
  if constexpr (kAligned && kCopiesX && kReorders) {
#pragma unroll 2
    for (int i = threadIdx.x; i < kPhaseUnits; i += kThreads)
      units[i] = in_order_of_weights(units[i]);
  }
}

// kSplit blocks of a cluster have the same rows.
template <int kSplit, bool kAligned>
__device__ inline void multiply(const Args& args) {
  uint8* const memory = shared_memory();
  uint8* const ring = memory + threadIdx.x * kPacketBytes;
  uint4* const x = (uint4*)(memory + kSteps * kStepBytes);
  float* const sums = (float*)(x + kBuffersX * kPhaseUnits);
  uint16* const scales = (uint16*)(sums + kWarpsK * kFew * kPitch);
  const int warp_n = threadIdx.x / 32 % kWarpsN, warp_k = threadIdx.x / 32 / kWarpsN;
  const int rank = blockIdx.x % kSplit;
  // Rounds: one step of each of the warps with the same rows.
  const int all_rounds = (int)args.rounds, most = (all_rounds + kSplit - 1) / kSplit;
  const int rounds = min(most, all_rounds - rank * most);
  const Index first_depth = (Index)rank * most * kStepDepth * kWarpsK;
  const int first = blockIdx.x / kSplit, every = gridDim.x / kSplit, units = (int)args.units;

  // What is copied next: a step of `ahead`, at `to_come` of its rounds.
  Place ahead;
  int unit_ahead = first, to_come = 0, stage_ahead = 0;
  Weights<kAligned> weights(args);
  const auto copy_step = [&] {
    if (unit_ahead < units) {
      if (to_come == 0) {
        place_unit(args, unit_ahead, first_depth, ahead);
        weights.start(args, ahead);
      }
      weights.copy_to(args, ring + stage_ahead * kStepBytes);
      if (++to_come == rounds) {
        to_come = 0;
        unit_ahead += every;
      }
    }
    stage_ahead = stage_ahead + 1 == kSteps ? 0 : stage_ahead + 1;
  };

  Place place;
  copy_step();
  place_unit(args, first, first_depth, place);
  start_x<kAligned>(args, place, first_depth, x);
  commit_copies();
#pragma unroll 1
  for (int s = 1; s < kSteps - 1; ++s) {
    copy_step();
    commit_copies();
  }
  start_scales(T(), args, place, first_depth, scales);

  int stage = 0, phase = 0;
#pragma unroll 1
  for (int unit = first; unit < units; unit += every) {
    place_unit(args, unit, first_depth, place);
    Products products;
    int phase_step = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      if (phase_step == 0 && (kBuffersX > 1 || kBuffersScales > 1 || unit == first)) {
        wait_for_copies<kSteps - 2>();
        if (kBuffersX > 1 || unit == first)
          settle_x<kAligned>(x + phase % kBuffersX * kPhaseUnits);
        __syncthreads();
        if constexpr (kBuffersX > 1 || kBuffersScales > 1) {
          // The next phase: of this unit, or the first of the next one.
          const bool here = round + kPhase < rounds;
          if (here || unit + every < units) {
            Place next;
            place_unit(args, here ? unit : unit + every, first_depth, next);
            const Index depth =
                first_depth + (Index)(here ? round + kPhase : 0) * kStepDepth * kWarpsK;
            if constexpr (kBuffersX > 1)
              start_x<kAligned>(args, next, depth, x + (phase + 1) % kBuffersX * kPhaseUnits);
            if constexpr (kBuffersScales > 1)
              start_scales(T(), args, next, depth,
                           scales + (phase + 1) % kBuffersScales * kScaleGroups * kRows);
          }
        }
      }
      copy_step();
      commit_copies();
      wait_for_copies<kSteps - 1>();
      Words packets[kPackets];
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
        packets[p].piece = *(const Piece*)(ring + stage * kStepBytes + p * kThreads * kPacketBytes);
      const uint4* const units_of_step =
          x + phase % kBuffersX * kPhaseUnits +
          (phase_step * kWarpsK + warp_k) * kUnits * kFew * 4 + threadIdx.x % 4;
      const Scales of_phase = {
          scales + phase % kBuffersScales * kScaleGroups * kRows + warp_n * kWarpRows,
          (first_depth + (Index)(round - phase_step) * kStepDepth * kWarpsK) / kScaleBlock};
      products.template add<kAligned>(
          args, place, packets, [&](int u, int m) { return units_of_step[(u * kFew + m) * 4]; },
          of_phase);
      place.depth += kStepDepth * kWarpsK;
      stage = stage + 1 == kSteps ? 0 : stage + 1;
      if (++phase_step == kPhase || round + 1 == rounds) {
        phase_step = 0;
        ++phase;
      }
    }
    finish_unit<kSplit, kAligned>(args, place, products, sums, rank);
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
