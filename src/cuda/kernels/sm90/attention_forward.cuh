// Fused attention on Hopper (FlashAttention-3): a persistent CTA computes tiles of kBlockM query
// rows of one head. One producer warp loads Q, K and V by TMA; kConsumers warpgroups with 64 rows
// each run S = Q K^T, online softmax and O += P V from the last seen block of keys to the first.
//
// Two overlaps keep the tensor cores busy. Within a warpgroup, S of a block is in flight together
// with O += P V of the block before it, and its softmax runs while P V continues. Between
// warpgroups, the order barrier (kPingPong) makes them issue their wgmma in turn, so that one
// computes its softmax while the others multiply.
//
// The header defines ScoreMma (64 x kBlockN), ValueMma (64 x kValueDim, B transposed), Element and
// the constants of sm90/warpgroups.cuh, attention_buffers.cuh and attention_softmax.cuh.
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_opaque.cuh"
#include "lib/ptx_wgmma.cuh"

// --- producer

// One thread. K of a block precedes V of the block before it, in the order of the wgmma.
__device__ inline void produce(const Args& args, AttentionBuffers buffers) {
  int query_phase = 0;
  for (int number = first_tile(), next = 0; number < tile_count(args); number = next) {
    next = take_tile(args, number);
    const AttentionTile tile = tile_at(args, number);
    const KeyBlocks blocks = RowMask(args, tile.batch).blocks<kBlockM, kBlockN>(tile.row);
    if (blocks.begin == blocks.end) {
      announce_tile(buffers, next);
      continue;
    }
    const int key_head = tile.head / (int)args.heads_of_key;
    const int value_head = tile.head / (int)args.heads_of_value;
    const auto load_keys = [&](int block) {
      auto& pipeline = buffers.keys;
      Mbarrier* const full = pipeline.producer_acquire(kKeyBytes);
#pragma unroll
      for (int box = 0; box < kHeadDim / kKeyBox; ++box)
        load_box<4>(pipeline.buffer() + box * kBlockN * kKeyRow, args.map_k, full,
                    {box * kKeyBox, block * kBlockN, key_head, tile.batch});
      pipeline.next();
    };
    const auto load_values = [&](int block) {
      auto& pipeline = buffers.values;
      Mbarrier* const full = pipeline.producer_acquire(kValueBytes);
#pragma unroll
      for (int box = 0; box < kValueDim / kValueBox; ++box)
        load_box<4>(pipeline.buffer() + box * kBlockN * kValueRow, args.map_v, full,
                    {box * kValueBox, block * kBlockN, value_head, tile.batch});
      pipeline.next();
    };
    int block = blocks.end - 1;
    load_keys(block);
#pragma unroll 1
    for (int group = 0; group < kConsumers; ++group) {
      Pipeline<1> pipeline = buffers.query_pipeline(group);
      pipeline.phase = query_phase;
      Mbarrier* const full = pipeline.producer_acquire(kQueryBytes);
#pragma unroll
      for (int box = 0; box < kHeadDim / kKeyBox; ++box)
        load_box<4>(buffers.query_buffer(group) + box * 64 * kKeyRow, args.map_q, full,
                    {box * kKeyBox, tile.row + 64 * group, tile.head, tile.batch});
    }
    query_phase ^= 1;
#pragma unroll 1
    for (; block > blocks.begin; --block) {
      load_keys(block - 1);
      load_values(block);
    }
    load_values(block);
    announce_tile(buffers, next);
  }
}

// --- consumers

// S = Q K^T.
__device__ inline void issue_scores(const uint8* queries, const uint8* keys,
                                    ScoreMma::Fragment& scores) {
  const uint64 q = smem_descriptor<kKeyRow>(queries, 0, 8 * kKeyRow);
  const uint64 k = smem_descriptor<kKeyRow>(keys, 0, 8 * kKeyRow);
  wgmma_fence();
#pragma unroll
  for (int d = 0; d < kHeadDim; d += 16) {
    const int box = d / kKeyBox, within = d % kKeyBox * 2;
    ScoreMma::multiply(scores, advance_descriptor(q, box * 64 * kKeyRow + within),
                       advance_descriptor(k, box * kBlockN * kKeyRow + within), d > 0);
  }
  wgmma_commit_group();
}
// O += P V.
__device__ inline void issue_output(const PackedWeights& weights, const uint8* values,
                                    ValueMma::Fragment& output) {
  const uint64 v = smem_descriptor<kValueRow>(values, kBlockN * kValueRow, 8 * kValueRow);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlockN / 16; ++k)
    ValueMma::multiply(output, weights[k], advance_descriptor(v, k * 16 * kValueRow), true);
  wgmma_commit_group();
}

// Rows of V from `first` on become zeros, because 0 * NaN is NaN. All warpgroups write them.
__device__ inline void clear_values(uint8* values, int first, int group) {
#pragma unroll
  for (int box = 0; box < kValueDim / kValueBox; ++box) {
    uint4* const rows = (uint4*)(values + (box * kBlockN + first) * kValueRow);
    for (int i = threadIdx.x % 128; i < (kBlockN - first) * (kValueRow / 16); i += 128)
      rows[i] = make_uint4(0, 0, 0, 0);
  }
  fence_proxy_async();
  group_barrier<128>(group);
}

// What a thread has of its tile: two rows, 8 apart, from `row` on.
struct AttentionRows {
  RowMask mask;
  int row;
  OnlineSoftmax softmax;
  float rescale[2];  // of `output`, before `weights` times V is added
  ScoreMma::Fragment scores;
  PackedWeights weights;
  ValueMma::Fragment output;

  __device__ AttentionRows(const RowMask& mask, int row, float exponent)
      : mask(mask), row(row), softmax(exponent) {
#pragma unroll
    for (int i = 0; i < kValueDim / 2; ++i) output[i] = 0;
  }
  __device__ void rescale_output() {
#pragma unroll
    for (int i = 0; i < kValueDim / 2; ++i) output[i] *= rescale[i / 2 % 2];
    fence_operand(output);
    fence_operand(weights);
  }
};

// A consumer warpgroup and the pipelines as it sees them.
struct AttentionConsumer {
  AttentionBuffers buffers;
  Pipeline<1> query_pipeline;
  OrderBarrier order;
  int group;
  float scale;  // of scores before they are compared

  __device__ AttentionConsumer(const AttentionBuffers& all, int group, float scale)
      : buffers(all),
        query_pipeline(all.query_pipeline(group)),
        order{group, group == 0},
        group(group),
        scale(scale) {}

  // Q, too, behind the last block of keys. A predicate, not a branch, as wgmma are in flight.
  __device__ void release_keys(bool is_last) {
    buffers.keys.consumer_release(buffers.keys.stage);
    buffers.keys.next();
    if (is_last && threadIdx.x % 32 == 0) arrive(query_pipeline.empty);
  }
  __device__ void release_values() {
    buffers.values.consumer_release(buffers.values.stage);
    buffers.values.next();
  }
  // Scores become weights.
  template <bool kMasked>
  __device__ void apply_softmax(AttentionRows& rows, int block) const {
    if constexpr (kScalesScores)
#pragma unroll
      for (int i = 0; i < kScoreCount; ++i) rows.scores[i] *= scale;
    if constexpr (kMasked) mask_scores(rows.mask, rows.row, block * kBlockN, rows.scores);
    rows.softmax.update(rows.scores, rows.rescale);
  }

  // S of the first block and its weights.
  __device__ void begin(const Args& args, const KeyBlocks& blocks, AttentionRows& rows) {
    const int block = blocks.end - 1;
    query_pipeline.consumer_wait();
    buffers.keys.consumer_wait();
    fence_operand(rows.scores);
    issue_scores(buffers.query_buffer(group), buffers.keys.buffer(), rows.scores);
    wgmma_wait_group<0>();
    fence_operand(rows.scores);
    release_keys(block == blocks.begin);
    apply_softmax<true>(rows, block);
    pack_weights(rows.scores, rows.weights);
    if constexpr (kHas_seq_len_kv) {
      const int seen = rows.mask.keys - block * kBlockN;
      if (seen < kBlockN && rows.mask.keys < (int)args.keys) {
        buffers.values.consumer_wait();
        clear_values(buffers.values.buffer(), seen, group);
      }
    }
  }

  // S of `block`, and P V of the block before it, whose weights become those of `block`.
  template <bool kMasked>
  __device__ void step(const KeyBlocks& blocks, int block, AttentionRows& rows) {
    buffers.keys.consumer_wait();
    order.wait(buffers.order);
    fence_operand(rows.scores);
    issue_scores(buffers.query_buffer(group), buffers.keys.buffer(), rows.scores);
    rows.rescale_output();
    buffers.values.consumer_wait();
    issue_output(rows.weights, buffers.values.buffer(), rows.output);
    order.arrive_next(buffers.order);
    wgmma_wait_group<1>();
    fence_operand(rows.scores);
    release_keys(block == blocks.begin);
    apply_softmax<kMasked>(rows, block);
    // Ends a basic block: the assembler would wait for P V before it computes the exponentials. V
    // has arrived, this does not wait.
    fence_operand(rows.scores);
    buffers.values.consumer_wait();
    wgmma_wait_group<0>();
    fence_operand(rows.output);
    fence_operand(rows.scores);
    release_values();
    pack_weights(rows.scores, rows.weights);
  }

  // P V of the last block.
  __device__ void finish(AttentionRows& rows) {
    rows.rescale_output();
    buffers.values.consumer_wait();
    issue_output(rows.weights, buffers.values.buffer(), rows.output);
    wgmma_wait_group<0>();
    fence_operand(rows.output);
    release_values();
    query_pipeline.next();
  }

  // All blocks of keys that the tile sees, at least one.
  __device__ void attend(const Args& args, const KeyBlocks& blocks, AttentionRows& rows) {
    begin(args, blocks, rows);
    int block = blocks.end - 2;
    if constexpr (kHasRightBound)
#pragma unroll 1
      for (; block >= blocks.whole_end; --block) step<true>(blocks, block, rows);
#pragma unroll 1
    for (; block >= blocks.whole_begin; --block) step<false>(blocks, block, rows);
    if constexpr (kHasLeftBound)
#pragma unroll 1
      for (; block >= blocks.begin; --block) step<true>(blocks, block, rows);
    finish(rows);
  }
};

__device__ inline void consume(const Args& args, const AttentionBuffers& buffers, int group) {
  // Converted once, not in every block of keys.
  float scale = 1;
  const float exponent = opaque((float)args.exponent);
  if constexpr (kScalesScores) scale = score_scale(args);
  AttentionConsumer consumer(buffers, group, scale);
  for (int number = first_tile(); number < tile_count(args);
       number = next_tile(consumer.buffers, number)) {
    const AttentionTile tile = tile_at(args, number);
    const RowMask mask(args, tile.batch);
    const KeyBlocks blocks = mask.blocks<kBlockM, kBlockN>(tile.row);
    const int in_group = (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
    AttentionRows rows(mask, tile.row + 64 * group + in_group, exponent);
    if (blocks.begin < blocks.end) consumer.attend(args, blocks, rows);
    rows.softmax.finish();
    store_tile(args, tile, mask, rows.row, rows.softmax, rows.output);
    if constexpr (kHasLeftBound || kHasRightBound)
      recompute_nonfinite(args, tile, mask, rows.row, scale, rows.softmax, rows.output);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_forward(const __grid_constant__ Args args) {
  const AttentionBuffers buffers(aligned_shared_memory());
  start_barriers([&] { buffers.init(); });
  const int group = own_group();
  if (group >= kConsumers) {
    setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x % 128 == 0) produce(args, buffers);
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    consume(args, buffers, group);
  }
}

// An earlier launch of one thread.
extern "C" __global__ void reset_tiles(const __grid_constant__ Args args) {
  if constexpr (kDynamic) *(int*)args.tile_counter = 0;
}
