// Pipelines of stages in shared memory between producers and consumers (CUTLASS: PipelineAsync,
// PipelineTmaAsync). Per stage: an mbarrier `full`, which completes when the stage is filled, and
// an mbarrier `empty`, which completes when it has been read.
//
//   producer                                consumer
//   producer_acquire()    waits on empty    consumer_wait()          waits on full
//   fills the stage                         reads the stage
//   producer_commit()     arrives on full   consumer_release(stage)  arrives on empty
//   next()                                  next()
//
// With TMA, producer_acquire(bytes) also expects the bytes of the stage and returns the full
// barrier, on which the loads complete: no commit follows.
#pragma once

#include "lib/ptx_mbarrier.cuh"

// Stage index, and parity of the phase of its barriers. Producers and consumers advance copies of
// their own through the same sequence.
template <int kCount>
struct PipelineState {
  int stage, phase;

  __device__ void next() {
    if (++stage < kCount) return;
    stage = 0;
    phase ^= 1;
  }
  // Skips `count` stages that belong to another warpgroup.
  __device__ void skip(int count) {
    stage += count;
    phase ^= stage / kCount & 1;
    stage %= kCount;
  }
};

template <int kCount>
struct Pipeline : PipelineState<kCount> {
  static const int kBarriers = 2 * kCount;
  Mbarrier *full, *empty;

  // At the first stage; `barriers` has room for kBarriers.
  __device__ void begin(Mbarrier* barriers) {
    full = barriers;
    empty = barriers + kCount;
    this->stage = this->phase = 0;
  }
  // By one thread; fence_barriers() and a CTA or cluster barrier follow.
  __device__ void init(int full_arrivals, int empty_arrivals) const {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      init_barrier(full + s, full_arrivals);
      init_barrier(empty + s, empty_arrivals);
    }
  }

  __device__ void producer_acquire() const { wait_for(empty + this->stage, this->phase ^ 1); }
  // By the thread that issues TMA.
  __device__ Mbarrier* producer_acquire(int bytes) const {
    Mbarrier* const filled = full + this->stage;
    producer_acquire();
    arrive_and_expect_tx(filled, bytes);
    return filled;
  }
  __device__ void producer_commit() const { arrive(full + this->stage); }

  __device__ void consumer_wait() const { wait_for(full + this->stage, this->phase); }
  // Called by a whole warp that has read stage `read`: one arrival. kCluster > 1: in every CTA of
  // the cluster, because their multicast loads write to the stage.
  template <int kCluster = 1>
  __device__ void consumer_release(int read) const {
    const int lane = threadIdx.x % 32;
    if constexpr (kCluster > 1) {
      if (lane < kCluster) arrive_remote(empty + read, lane);
    } else {
      if (lane == 0) arrive(empty + read);
    }
  }
};

// With the memory of its stages, kBytes each.
template <int kCount, int kBytes>
struct BufferPipeline : Pipeline<kCount> {
  uint8* memory;

  __device__ void begin(uint8* stages, Mbarrier* barriers) {
    memory = stages;
    Pipeline<kCount>::begin(barriers);
  }
  __device__ uint8* buffer() const { return memory + this->stage * kBytes; }
};
