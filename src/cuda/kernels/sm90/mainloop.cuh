// The product of two matrices that copy engines bring into shared memory block by block of depth:
// one warp asks for them, kConsumers warpgroups multiply and finish. Comes after a kernel's head,
// sm90/schedule.cuh, lib/product_rows.cuh, lib/ptx_wgmma_product.cuh, sm90/warpgroups.cuh,
// sm90/join_parts.cuh, sm90/ask_ahead.cuh and a loader, which has
//   kStageBytesA, kStageBytesB
//   load_stage(args, work, block, a, b, barrier)  asks for the tiles of a block of depth
//   finish_tile_rows(args, work, slab, sums, row, tails)  what becomes of 16 rows of sums
//   Computing<Args>(args, memory, group)  where a factor is computed on the way in, by a warpgroup:
//   .stage(args, work, block, a, b, ready)  `ready` waits for the stage and asks for what is not
//   computed, unless it is given false; `memory` is behind all
// The head has kStages, kRowBlocks (of 64 rows that a warpgroup has of a tile), kTransposeA,
// kTransposeB, kPromotes, kAskedBytes (of a stage), kHasWhole (whether any tile is whole) and
// TileTails (lib/product_tails.cuh; there are none with splits). With kStreams comes after
// sm90/stream_parts.cuh, too.
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

// Lanes of a warp that say that they have computed their part of a stage. One does for its warp,
// but checkers of races follow only who speaks: where a stage is not always the same warpgroup's,
// all do.
static const int kTellers = kStages % kProducers == 0 ? 1 : 32;
// At the barrier of a full stage: whoever asks for a part of it, and warps that compute the rest.
static const int kFullArrivals = (kAskedBytes > 0) + (kComputes ? 4 * kTellers : 0);
// A product has 64 rows and WGMMA_N columns: the pieces that a warpgroup has of a tile, those of
// the same rows one after the other.
static const int kParts = kTileN / WGMMA_N;
static const int kPieces = kRowBlocks * kParts;

template <class A>
struct Computing;

struct Ring : StageWalk<kStages> {
  uint8 *a, *b, *slabs, *behind;
  Mbarrier *full, *empty, *turns, *computed;
};

__device__ inline Ring ring_of(uint8* memory) {
  Ring ring;
  ring.a = memory;
  ring.b = ring.a + kStages * kStageBytesA;
  ring.slabs = ring.b + kStages * kStageBytesB;
  ring.full = (Mbarrier*)(ring.slabs + kConsumers * 4 * kSlabBytes);
  ring.empty = ring.full + kStages;
  ring.turns = ring.empty + kStages;
  ring.computed = ring.turns + kConsumers;
  ring.behind = (uint8*)(ring.turns + (kConsumers + 2) / 2 * 2);  // a multiple of 16
  ring.stage = ring.parity = 0;
  return ring;
}

__device__ inline void start(const Ring& ring) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(ring.full + s, kFullArrivals);
      init_barrier(ring.empty + s, 4 * kSharers * kCluster);
    }
    for (int group = 0; group < kConsumers; ++group) init_barrier(ring.turns + group, 4);
    init_barrier(ring.computed, kProducers * 128);
    fence_barriers();
  }
  if constexpr (kCluster > 1)
    meet_cluster();
  else
    __syncthreads();
}

// One thread.
template <class A>
__device__ inline void ask_for_stages(const A& args, Ring ring) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    Announced announced;
    for (int block = work.first; block < work.first + work.count; ++block, ring.next()) {
      Mbarrier* full = ring.full + ring.stage;
      wait_for(ring.empty + ring.stage, ring.parity ^ 1);
      arrive_and_expect(full, kAskedBytes);
      load_stage(args, work, block, ring.a + ring.stage * kStageBytesA,
                 ring.b + ring.stage * kStageBytesB, full);
      if constexpr (kBroughtStages > 0) announced.block(args, work, block - work.first);
    }
    if constexpr (kBroughtStages > 0) {
      for (int part = 0; part < kBroughtStages; ++part, ring.next()) {
        wait_for(ring.empty + ring.stage, ring.parity ^ 1);
        ask_for_brought(args, work, part, ring.a + ring.stage * kStageBytesA,
                        ring.b + ring.stage * kStageBytesB, ring.full + ring.stage);
      }
    }
  }
}
// A warpgroup; where several compute, they take stages in turns.
template <class A>
__device__ inline void compute_stages(const A& args, Ring ring, int group) {
  const bool asks = kAskedBytes > 0 && threadIdx.x % 128 == 0;
  Computing<A> computing(args, ring.behind, group);
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    for (int block = work.first; block < work.first + work.count; ++block, ring.next()) {
      if (kProducers > 1 && turn++ % kProducers != group) continue;
      uint8* a = ring.a + ring.stage * kStageBytesA;
      uint8* b = ring.b + ring.stage * kStageBytesB;
      Mbarrier* full = ring.full + ring.stage;
      computing.stage(args, work, block, a, b, [&](bool is_asked = true) {
        wait_for(ring.empty + ring.stage, ring.parity ^ 1);
        if (!asks) return;
        arrive_and_expect(full, is_asked ? kAskedBytes : 0);
        if (is_asked) load_stage(args, work, block, a, b, full);
      });
      fence_shared_writes();
      __syncwarp();
      if (threadIdx.x % 32 < kTellers) arrive(full);
    }
  }
}

// The warp has read a stage; all blocks whose loads write to it are told.
__device__ inline void release(const Ring& ring, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (kCluster > 1) {
    if (lane < kCluster) arrive_at_block(ring.empty + stage, lane);
  } else {
    if (lane == 0) arrive(ring.empty + stage);
  }
}

// The products of a stage for kCount pieces, started. `keeps`: the sums so far count.
template <int kCount>
__device__ inline void start_products(const Ring& ring, int first_row_block, int first_piece,
                                      bool keeps, Sum (&sums)[kCount][WGMMA_N / 2]) {
  const uint64 a = tile_descriptor<kTransposeA>(ring.a + ring.stage * kStageBytesA +
                                                first_row_block * rows_step<kTransposeA>());
  const uint64 b = tile_descriptor<kTransposeB>(ring.b + ring.stage * kStageBytesB);
  keep_in_registers(sums);
  fence_products();
#pragma unroll
  for (int k = 0; k < kTileDepth / kInstructionDepth; ++k)
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row_block = (first_piece + i) / kParts, part = (first_piece + i) % kParts;
      multiply(sums[i],
               advance_descriptor(
                   a, row_block * rows_step<kTransposeA>() + k * depth_step<kTransposeA>()),
               advance_descriptor(b, part * (WGMMA_N / 64) * rows_step<kTransposeB>() +
                                         k * depth_step<kTransposeB>()),
               keeps || k > 0);
    }
  commit_products();
  keep_in_registers(sums);
}

// While a tile's last products are made: until what was brought for it has come. The next turn
// begins here, so that who takes it knows of all stages before.
__device__ inline void wait_for_brought(Ring ring, const Turns& turns) {
  if constexpr (kBroughtStages > 0) {
    for (int part = 0; part < kBroughtStages; ++part, ring.next())
      wait_for(ring.full + ring.stage, ring.parity);
    turns.pass_on(ring.turns);
  }
}

// For units whose sums have few bits (fp8): those of a stage, 128 of depth, are added in f32, piece
// by piece. Meanwhile the other warpgroups keep the units busy.
template <class Meanwhile>
__device__ inline void multiply_blocks_and_promote(Ring& ring, const Work& work, const Turns& turns,
                                                   int first_row_block,
                                                   Sum (&sums)[kPieces][WGMMA_N / 2],
                                                   Meanwhile meanwhile) {
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
    for (int i = 0; i < WGMMA_N / 2; ++i) sums[piece][i] = 0;
  Sum of_stage[1][WGMMA_N / 2];
  for (int block = 0; block < work.count; ++block, ring.next()) {
    wait_for(ring.full + ring.stage, ring.parity);
    if (kBroughtStages == 0 && block == work.count - 1) turns.pass_on(ring.turns);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      start_products(ring, first_row_block, piece, false, of_stage);
      if (block == 0 && piece == 0) meanwhile();
      wait_for_products<0>();
      keep_in_registers(of_stage);
      if (piece == kPieces - 1) release(ring, ring.stage);
#pragma unroll
      for (int i = 0; i < WGMMA_N / 2; ++i) sums[piece][i] += of_stage[0][i];
    }
  }
  wait_for_brought(ring, turns);
}

// Multiplies all blocks of a piece of work. A stage is given back when the products that follow
// have been started. `meanwhile` is done once, while the first ones are made. The last ones are
// left to end_products, with what is handed back: the stage that they read.
template <class Meanwhile>
__device__ inline int multiply_blocks(Ring& ring, const Work& work, const Turns& turns,
                                      int first_row_block, Sum (&sums)[kPieces][WGMMA_N / 2],
                                      Meanwhile meanwhile) {
  int before = -1;
  for (int block = 0; block < work.count; ++block, ring.next()) {
    wait_for(ring.full + ring.stage, ring.parity);
    if (kBroughtStages == 0 && block == work.count - 1) turns.pass_on(ring.turns);
    start_products(ring, first_row_block, 0, block > 0, sums);
    if (block == 0) meanwhile();
    wait_for_products<1>();
    if (before >= 0) release(ring, before);
    before = ring.stage;
  }
  wait_for_brought(ring, turns);
  return before;
}
__device__ inline void end_products(const Ring& ring, int stage,
                                    Sum (&sums)[kPieces][WGMMA_N / 2]) {
  wait_for_products<0>();
  keep_in_registers(sums);
  if (stage >= 0) release(ring, stage);
}

// 16 rows of a warp for lib/product_boxes.cuh, which wants to be ready before it waits for the
// products: what it loads of columns and most addresses are there then. Others wait at once.
// Whether all rows and columns of the tile are there is decided once for all rows of a warp: what
// belongs to columns is loaded once for them.
// Who computes factors waits for stages: these are given back before boxes are waited for.
static const bool kWaitsLate = kBoxes > 0 && !kComputes;
template <bool kIsWhole>
struct BoxRows : BroughtRows<Ring> {
  static const bool kWhole = kIsWhole;
  uint8* boxes;
  Sum (&sums)[kPieces][WGMMA_N / 2];
  bool is_first;  // of the warp
  int stage;      // that the last products read

  __device__ void wait() const {
    if (is_first) end_products(this->ring, stage, sums);
  }
};

// Where no work follows: until all warps have given back all stages, and all threads have said that
// they have computed theirs.
__device__ inline void wait_for_all_stages(Ring ring) {
  if constexpr (kComputes) wait_for(ring.computed, 0);
  for (int s = 0; s < kStages; ++s, ring.next()) wait_for(ring.empty + ring.stage, ring.parity ^ 1);
}

// What a warp has for itself. Its number is the same for all lanes, as the compiler can see:
// addresses and bounds stay in uniform registers.
__device__ inline int own_warp() { return __shfl_sync(~0u, (int)threadIdx.x / 32 % 4, 0); }
__device__ inline int first_row_block_of(int group) { return kPingPong ? 0 : group * kRowBlocks; }
__device__ inline uint8* slab_of(const Ring& ring, int group) {
  return ring.slabs + (group * 4 + threadIdx.x / 32 % 4) * kSlabBytes;
}

// A warpgroup. The sums of a part stay in the ring.
template <class A>
__device__ inline void consume(const A& args, Ring ring, int group) {
  const int warp = own_warp();
  uint8* slab = slab_of(ring, group);
  const int first_row_block = first_row_block_of(group);
  Turns turns = {group, group == 0};
  TileTails tails;
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    if (kPingPong && turn++ % kConsumers != group) {
      ring.skip(work.count + kBroughtStages);
      continue;
    }
    const bool finishes = !kStreams || work.first == 0;
    if (finishes) ask_ahead<false>(args, work, first_row_block * 64, slab);
    const auto meanwhile = [&] {
      if (finishes) ask_ahead<true>(args, work, first_row_block * 64, slab);
    };
    Sum sums[kPieces][WGMMA_N / 2];
    turns.wait(ring.turns);
    if (work.count == 0) {
      turns.pass_on(ring.turns);
      meanwhile();
    }
    int last_stage = -1;
    if constexpr (kPromotes)
      multiply_blocks_and_promote(ring, work, turns, first_row_block, sums, meanwhile);
    else
      last_stage = multiply_blocks(ring, work, turns, first_row_block, sums, meanwhile);
    if constexpr (!kWaitsLate) end_products(ring, last_stage, sums);
    if (kHasEmptyWork && !kPromotes && work.count == 0) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
        for (int i = 0; i < WGMMA_N / 2; ++i) sums[piece][i] = 0;
    }
    if constexpr (kSplits > 1) {
      if (!kHasWhole || is_part(args, number)) {
        wait_for_all_stages(ring);
        lay_down_sums(ring.a, sums, first_row_block * 4 + warp);
        continue;
      }
    }
    if constexpr (kStreams) {
      if (!finishes) {
        hand_on_sums(args, sums, first_row_block * 4 + warp);
        continue;
      }
      if (work.count < (int)args.tile_stages) add_parts(args, sums, first_row_block * 4 + warp);
    }
    if constexpr (kHasWhole) {
      tails.begin_tile(args, work);
      const auto finish = [&](auto rows_of) {
#pragma unroll
        for (int r = 0; r < kRowBlocks; ++r)
          finish_tile_rows(args, work, rows_of(r), *(Sum(*)[kTileN / 2]) sums[r * kParts],
                           work.m + (first_row_block + r) * 64 + warp * 16, tails);
      };
      if constexpr (kWaitsLate) {
        const auto bounds = bounds_of(args, work);
        const int rows_end = (first_row_block + kRowBlocks) * 64;
        const auto brought = [&](int r) {
          return BroughtRows<Ring>{ring, first_row_block + r, r == kRowBlocks - 1};
        };
        if (bounds.first_row + work.m + rows_end <= bounds.row_end &&
            bounds.first_column + kTileN <= bounds.column_end)
          finish([&](int r) { return BoxRows<true>{brought(r), slab, sums, r == 0, last_stage}; });
        else
          finish([&](int r) { return BoxRows<false>{brought(r), slab, sums, r == 0, last_stage}; });
      } else {
        finish([&](int) { return slab; });
      }
      for (int part = 0; part < kBroughtStages; ++part) ring.next();
      tails.end_tile(args, slab, group);
    }
  }
  tails.end(args, group);
  wait_for_results();
}

// The number of the warpgroup. The same for a whole warp, as the compiler can see: descriptors stay
// in uniform registers.
__device__ inline int own_group() { return __shfl_sync(~0u, (int)threadIdx.x / 128, 0); }

// All threads of the cluster, from one place of the program and with the same number of registers:
// the sums of the parts have been laid down.
template <class A>
__device__ inline void finish_part(const A& args, const Ring& ring) {
  cluster_barrier();
  const int group = own_group();  // again: it need not have been kept
  if (group >= kConsumers || (kPingPong && group != rounds_before_part(args) % kConsumers)) return;
  if constexpr (kConsumers > 1) take_registers<kConsumerRegisters>();
  join_parts(args, ring.a, slab_of(ring, group),
             first_row_block_of(group) * 4 + threadIdx.x / 32 % 4);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    product(const __grid_constant__ Args args) {
  uint8* memory = shared_memory();
  memory += (1024 - (uint64)memory % 1024) % 1024;  // no round trip: it stays known to be shared
  Ring ring = ring_of(memory);
  start(ring);
  const int group = own_group();
  if (group >= kConsumers) {
    if constexpr (kConsumers > 1) give_registers<kProducerRegisters>();
    if constexpr (kComputes) {
      compute_stages(args, ring, group - kConsumers);
      if constexpr (kSplits > 1) arrive(ring.computed);
    } else if (threadIdx.x % 128 == 0) {
      ask_for_stages(args, ring);
    }
    __syncwarp();  // the barriers below take whole warps
  } else {
    if constexpr (kConsumers > 1) take_registers<kConsumerRegisters>();
    consume(args, ring, group);
    if constexpr (kSplits > 1 && kConsumers > 1) {
      group_barrier<128>(group);  // between two changes of a warpgroup's registers
      give_registers<kProducerRegisters>();
    }
  }
  if constexpr (kSplits > 1)
    if (has_part(args)) finish_part(args, ring);
  // Others may still tell this block's barriers that they are done, or read its sums.
  if constexpr (kCluster > 1 || kSplits > 1) meet_cluster();
}
