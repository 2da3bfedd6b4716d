// y[few][many] = x[few][depth] * weights[many][depth], few rows: bound by reading the weights once.
//
// A block has kRows rows of weights and a part of the depth, in steps. Each thread copies its own
// packets of the steps to come to a ring in shared memory, kSteps - 1 of them on the way at a time,
// and waits for nobody else. x is in shared memory for a phase of kPhase steps; the next phase is on
// the way meanwhile. At the end, warps with the same rows add their sums, then blocks of a cluster.
#include "lib/ptx_async.cuh"
#include "lib/ptx_cluster.cuh"

static const int kRows = kWarpsN * kWarpRows;
static const int kThreads = kWarpsN * kWarpsK * 32;
static const int kStepBytes = kThreads * kPackets * kPacketBytes;
static const int kPhaseSteps = kPhase * kWarpsK;  // of all warps with the same rows
static const int kPhaseUnits = kPhaseSteps * kUnits * kFew * 4;
static const int kPitch = kRows + 4;  // of sums in shared memory: lanes then hit different banks

// The lane's packets in memory.
template <bool kAligned>
struct Weights {
  const uint8* first;  // packet 0 of the next step
  int64 next_packet, next_step;
  Index row, depth;

  __device__ Weights(const Args& args, const Place& place) {
    row = place.row;
    depth = place.depth;
    int64 at = args.first_weight + row * args.row_stride + depth * args.depth_stride;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at += place.batch[axis] * args.batch_stride[axis];
    first = (const uint8*)args.weights + at * kBits / 8;
    next_packet = (kAlong ? 8 * args.row_stride : args.depth_stride) * kBits / 8;
    next_step = kStepDepth * kWarpsK * args.depth_stride * kBits / 8;
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
#pragma unroll 4
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
// After the thread's own copies have arrived.
template <bool kAligned>
__device__ inline void settle_x(uint4* units) {
  if constexpr (kAligned && kCopiesX && kReorders) {
#pragma unroll 4
    for (int i = threadIdx.x; i < kPhaseUnits; i += kThreads)
      units[i] = in_order_of_weights(units[i]);
  }
}

// kVector sums of row m of x, row `row` of the weights on, of all warps with these rows.
template <int kVector>
__device__ inline void sums_of_warps(const float* sums, int m, int row, R (&values)[kVector]) {
#pragma unroll
  for (int l = 0; l < kVector; ++l) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarpsK; ++w) sum += sums[(w * kFew + m) * kPitch + row + l];
    values[l] = sum;
  }
}
template <int kVector>
__device__ inline void store_results(const Args& args, const Place& place, int m, Index row,
                                     R (&values)[kVector]) {
  Index at[kRank];
#pragma unroll
  for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = place.batch[axis];
  at[kRank - 2] = m;
  at[kRank - 1] = row;
  if (row >= (Index)args.many) return;
  scale_results<kVector>(args, at, values);
  epilogue<kVector>(args, at, values);
}

// kSplit blocks of a cluster have the same rows.
template <int kSplit, bool kAligned>
__device__ inline void multiply(const Args& args) {
  uint8* const memory = shared_memory();
  uint8* const ring = memory + threadIdx.x * kPacketBytes;
  uint4* const x = (uint4*)(memory + kSteps * kStepBytes);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_n = warp % kWarpsN, warp_k = warp / kWarpsN;
  const int rank = blockIdx.x % kSplit;
  const Index first_row = (Index)(blockIdx.x / kSplit) * kRows;
  // Rounds: one step of each of the warps with the same rows.
  const int all_rounds = (int)args.rounds, most = (all_rounds + kSplit - 1) / kSplit;
  const int rounds = max(min(most, all_rounds - rank * most), 0);
  const Index first_depth = (Index)rank * most * kStepDepth * kWarpsK;

  Place place;
  if constexpr (kRank > 2) {
    int64 batch = blockIdx.y;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      place.batch[axis] = (Index)(batch % args.batch_extent[axis]);
      batch /= args.batch_extent[axis];
    }
  }
  place.row = first_row + warp_n * kWarpRows + lane / 4 * (kAlong ? 1 : kElements);
  place.depth = first_depth + warp_k * kStepDepth + lane % 4 * kOwn;

  Weights<kAligned> weights(args, place);
  if (rounds > 0) weights.copy_to(args, ring);
  start_x<kAligned>(args, place, first_depth, x);
  commit_copies();
#pragma unroll
  for (int s = 1; s < kSteps - 1; ++s) {
    if (s < rounds) weights.copy_to(args, ring + s * kStepBytes);
    commit_copies();
  }

  Products products;
  int stage = 0, ahead = kSteps - 1, phase_step = 0, phase = 0;
#pragma unroll 1
  for (int s = 0; s < rounds; ++s) {
    if (phase_step == 0) {
      wait_for_copies<kSteps - 2>();
      settle_x<kAligned>(x + phase % kBuffers * kPhaseUnits);
      __syncthreads();
      if (s + kPhase < rounds)
        start_x<kAligned>(args, place, first_depth + (Index)(s + kPhase) * kStepDepth * kWarpsK,
                          x + (phase + 1) % kBuffers * kPhaseUnits);
    }
    if (s + kSteps - 1 < rounds) weights.copy_to(args, ring + ahead * kStepBytes);
    commit_copies();
    wait_for_copies<kSteps - 1>();
    Words packets[kPackets];
#pragma unroll
    for (int p = 0; p < kPackets; ++p)
      packets[p].piece = *(const Piece*)(ring + stage * kStepBytes + p * kThreads * kPacketBytes);
    const int step = phase_step * kWarpsK + warp_k;
    products.template add<kAligned>(
        args, place, packets, x + phase % kBuffers * kPhaseUnits + step * kUnits * kFew * 4);
    place.depth += kStepDepth * kWarpsK;
    stage = stage + 1 == kSteps ? 0 : stage + 1;
    ahead = ahead + 1 == kSteps ? 0 : ahead + 1;
    if (++phase_step == kPhase) {
      phase_step = 0;
      ++phase;
    }
  }

  wait_for_copies<0>();
  __syncthreads();  // sums take the place of the ring
  float* const sums = (float*)memory;
  products.finish([&](int row, int m, float sum) {
    sums[(warp_k * kFew + m) * kPitch + warp_n * kWarpRows + row] = sum;
  });
  __syncthreads();
  constexpr int kVector = kAligned ? kVectorY : 1;
  constexpr int kShare = kRows / kSplit, kAcross = kShare / kVector;
  if constexpr (kSplit > 1) {
    if constexpr (kWarpsK > 1) {
      for (int i = threadIdx.x; i < kRows * kFew; i += kThreads) {
        R sum[1];
        sums_of_warps(sums, i / kRows, i % kRows, sum);
        sums[i / kRows * kPitch + i % kRows] = sum[0];
      }
    }
    cluster_barrier();
  }
  for (int i = threadIdx.x; i < kAcross * kFew; i += kThreads) {
    const int m = i / kAcross, row = i % kAcross * kVector + rank * kShare;
    R values[kVector];
    if constexpr (kSplit == 1) {
      sums_of_warps(sums, m, row, values);
    } else {
      float parts[kSplit][kVector];
#pragma unroll
      for (int r = 0; r < kSplit; ++r)
#pragma unroll
        for (int l = 0; l < kVector; ++l)
          parts[r][l] = load_from_block(sums + m * kPitch + row + l, r);
      fill((R)0, values);
#pragma unroll
      for (int r = 0; r < kSplit; ++r)
#pragma unroll
        for (int l = 0; l < kVector; ++l) values[l] += parts[r][l];
    }
    store_results(args, place, m, first_row + row, values);
  }
  if constexpr (kSplit > 1) cluster_barrier();  // nobody leaves while others read its sums
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_skinny(const __grid_constant__ Args args) {
  multiply<kClusterBlocks, true>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_skinny_elements(const __grid_constant__ Args args) {
  multiply<1, false>(args);
}
