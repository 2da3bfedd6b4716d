// y[few][many] = x[few][depth] * weights[many][depth] as gemm_skinny_rows.cuh has it, where weights
// go straight to registers: nothing but sums needs shared memory, and nothing comes before the
// first loads. For small matrices.
//
// A block has kRows rows of weights and the whole depth, whose steps its warps take in turn. A warp
// has two batches of kBatch steps in registers: one on its way, one that is multiplied. x comes
// through the L1 cache, which weights pass by.
#include "lib/ptx_memory.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warp

// Where the first step of the lane lies. Rows past the last one are read as it is: their sums go
// nowhere.
struct Lane {
  const uint8 *weights[kPackets], *x;
  const typename S::Word* scales[kPackets];
  int steps;  // of the warp

  __device__ Lane(const Args& args, const Place& place) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int warp_n = threadIdx.x / 32 % kWarpsN, warp_k = threadIdx.x / 32 / kWarpsN;
    int64 at = args.first_weight, x_at = warp_k * kStepDepth + t * kOwn, scale_at = 0;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) {
      at += place.batch[axis] * args.batch_stride[axis];
      x_at += place.batch[axis] * args.x_batch_stride[axis];
      scale_at += place.batch[axis] * args.scale_batch_stride[axis];
    }
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      const Index row = min(place.first_row + warp_n * kWarpRows + g + 8 * p, (Index)args.many - 1);
      weights[p] = (const uint8*)args.weights + (at + row * args.row_stride) * kBits / 8 +
                   warp_k * kStepBytes + t * kPacketBytes;
      scales[p] = (const typename S::Word*)args.scales + scale_at + row;
    }
    x = (const uint8*)args.x + x_at * 2;
    steps = ((int)args.row_bytes / kStepBytes - warp_k + kWarpsK - 1) / kWarpsK;
  }
};

struct Batch {
  Words packets[kBatch][kPackets];
  typename S::Word scales[kScaled ? kBatch : 1][kPackets];

  // From step `first` of the warp on, as far as there are steps.
  __device__ void load(const Args& args, const Lane& lane, int first) {
    if (first + kBatch <= lane.steps) {
#pragma unroll
      for (int s = 0; s < kBatch; ++s) load_step(args, lane, first, s);
    } else {
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
        if (first + s < lane.steps) load_step(args, lane, first, s);
    }
  }
  __device__ void multiply(const Args& args, const Place& place, const Lane& lane, int first,
                           Products& products) const {
    if (first + kBatch <= lane.steps) {
#pragma unroll
      for (int s = 0; s < kBatch; ++s) multiply_step(args, place, lane, first, s, products);
    } else {
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
        if (first + s < lane.steps) multiply_step(args, place, lane, first, s, products);
    }
  }

 private:
  __device__ void load_step(const Args& args, const Lane& lane, int first, int s) {
    const int at = (first + s) * (kWarpsK * kStepBytes);
#pragma unroll
    for (int p = 0; p < kPackets; ++p)
      packets[s][p].piece = load_once((const Piece*)(lane.weights[p] + at));
    if constexpr (kScaled) {
      const int warp_k = threadIdx.x / 32 / kWarpsN;
      const int group = ((first + s) * kWarpsK + warp_k) * kStepDepth / kScaleBlock;
#pragma unroll
      for (int p = 0; p < kPackets; ++p) scales[s][p] = lane.scales[p][group * args.scale_stride];
    }
  }
  __device__ void multiply_step(const Args& args, const Place& place, const Lane& lane, int first,
                                int s, Products& products) const {
    const uint8* const x = lane.x + (first + s) * (kWarpsK * kStepDepth * 2);
    const auto unit = [&](int u, int m) {
      return in_order_of_weights(
          load_read_only((const uint4*)(x + m * args.x_row_stride * 2 + u * 16)));
    };
    if constexpr (kScaled) {
      Products own;
      own.template add<true>(args, place, packets[s], unit, Scales{});
      products.add_scaled(own, OffsetSums(),
                          [&](int p, int) { return (float)widen(S(), scales[s][p]); });
    } else {
      products.template add<true>(args, place, packets[s], unit, Scales{});
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_skinny_direct(const __grid_constant__ Args args) {
  Place place;
  int group = blockIdx.x;
  if constexpr (kRank > 2) {
    int batch = group / (int)args.groups;
    group %= (int)args.groups;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      place.batch[axis] = (Index)(batch % (int)args.batch_extent[axis]);
      batch /= (int)args.batch_extent[axis];
    }
  }
  place.first_row = (Index)group * kRows;
  const Lane lane(args, place);
  Batch here, next;
  here.load(args, lane, 0);
  next.load(args, lane, kBatch);
  Products products;
#pragma unroll 1
  for (int step = 0; step < lane.steps; step += 2 * kBatch) {
    here.multiply(args, place, lane, step, products);
    here.load(args, lane, step + 2 * kBatch);
    next.multiply(args, place, lane, step + kBatch, products);
    next.load(args, lane, step + 3 * kBatch);
  }
  finish_unit<1, true>(args, place, products, (float*)shared_memory(), 0);
}
