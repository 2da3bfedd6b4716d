// Backward pass of fused attention on Hopper (FlashAttention-3): a CTA has kBlockN keys of one head
// and visits the blocks of kBlockM rows that see them, of all query heads that share the keys. One
// producer warp loads by TMA; two consumer warpgroups with 64 keys each compute
//   S^T = K Q^T, dP^T = V dO^T       keys are rows: P^T and dS^T become A operands in registers
//   P = 2^(c S - L), dS = P (dP - delta)
//   dV += P^T dO, dK += dS^T Q       accumulated in registers
//   dQ += dS K                       dS through shared memory, dQ added to f32 scratch in memory
// attention_backward_rows.cuh prepares L, delta and the scratch; attention_backward_queries.cuh
// converts dQ.
//
// Requires ScoreMma (64 x kBlockM), KeyMma (64 x kHeadDim, B transposed), QueryMma (64 x 64, A and
// B transposed), Element, sm90/attention_backward_buffers.cuh and
// sm90/attention_backward_store.cuh.
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_math.cuh"
#include "lib/ptx_opaque.cuh"
#include "lib/ptx_red.cuh"
#include "lib/ptx_wgmma.cuh"

// --- producer

// Boxes of kRows rows from {row, head, batch} on.
template <int kRows>
__device__ inline void load_matrix(uint8* to, const TensorMap& map, Mbarrier* full, int row,
                                   int head, int batch) {
#pragma unroll
  for (int box = 0; box < kHeadDim / 64; ++box)
    load_box<4>(to + box * kRows * kRow, map, full, {box * 64, row, head, batch});
}

// One thread.
__device__ inline void produce(const Args& args, BackwardBuffers buffers, const KeyTile& tile) {
  const auto load_keys = [&](uint8* to, const TensorMap& map, Mbarrier* full) {
    arrive_and_expect_tx(full, kKeyBytes);
    load_matrix<kBlockN>(to, map, full, tile.first_key, tile.key_head, tile.batch);
  };
  const int group = (int)args.heads_of_key, first_head = tile.key_head * group;
  load_keys(buffers.keys, args.map_k, buffers.key_barriers);
#pragma unroll 1
  for (int head = first_head; head < first_head + group; ++head)
#pragma unroll 1
    for (int block = tile.blocks.begin; block < tile.blocks.end; ++block) {
      const int row_tile = (tile.batch * (int)args.heads + head) * (int)args.tiles_m + block;
      const auto load_rows = [&](auto& pipeline, const TensorMap& map, const TensorMap& value_map,
                                 float* values) {
        Mbarrier* const full = pipeline.producer_acquire(kQueryBytes + kRowValueBytes);
        load_matrix<kBlockM>(pipeline.buffer(), map, full, block * kBlockM, head, tile.batch);
        load_box<2>(values + pipeline.stage * kBlockM, value_map, full, {0, row_tile});
        pipeline.next();
      };
      load_rows(buffers.queries, args.map_q, args.map_log_sums, buffers.log_sums);
      if (head == first_head && block == tile.blocks.begin)
        load_keys(buffers.values, args.map_v, buffers.key_barriers + 1);
      load_rows(buffers.gradients, args.map_d_o, args.map_deltas, buffers.deltas);
    }
}

// --- consumers

// The thread's part of S^T and of what follows from it.
typedef uint32 PackedScores[kBlockM / 16][4];

// S^T = K Q^T or dP^T = V dO^T.
__device__ inline void issue_scores(const uint8* keys, const uint8* queries,
                                    ScoreMma::Fragment& scores) {
  const uint64 a = smem_descriptor<kRow>(keys, 0, 8 * kRow);
  const uint64 b = smem_descriptor<kRow>(queries, 0, 8 * kRow);
  wgmma_fence();
#pragma unroll
  for (int d = 0; d < kHeadDim; d += 16) {
    const int box = d / 64, within = d % 64 * 2;
    ScoreMma::multiply(scores, advance_descriptor(a, box * kBlockN * kRow + within),
                       advance_descriptor(b, box * kBlockM * kRow + within), d > 0);
  }
  wgmma_commit_group();
}
// dV += P^T dO or dK += dS^T Q.
__device__ inline void issue_key_gradient(const PackedScores& scores, const uint8* queries,
                                          KeyMma::Fragment& gradient) {
  const uint64 b = smem_descriptor<kRow>(queries, kBlockM * kRow, 8 * kRow);
  wgmma_fence();
#pragma unroll
  for (int m = 0; m < kBlockM / 16; ++m)
    KeyMma::multiply(gradient, scores[m], advance_descriptor(b, m * 16 * kRow), true);
  wgmma_commit_group();
}
// dQ = dS K: a warpgroup has 64 rows (kBlockM = 128), or half of the columns.
__device__ inline void issue_query_gradient(const uint8* scores, const uint8* keys, int group,
                                            QueryMma::Fragment& gradient) {
  const int box = group * kBlockN * kRow;
  const uint64 a = smem_descriptor<kRow>(scores + (kBlockM > 64 ? box : 0), 0, 8 * kRow);
  const uint64 b = smem_descriptor<kRow>(keys + (kBlockM > 64 ? 0 : box), 0, 8 * kRow);
  wgmma_fence();
#pragma unroll
  for (int n = 0; n < kBlockN / 16; ++n)
    QueryMma::multiply(gradient, advance_descriptor(a, n * 16 * kRow),
                       advance_descriptor(b, n * 16 * kRow), n > 0);
  wgmma_commit_group();
}

__device__ inline void pack_scores(const ScoreMma::Fragment& scores, PackedScores& packed) {
#pragma unroll
  for (int m = 0; m < kBlockM / 16; ++m)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      packed[m][i] = pack_pair(Element(), scores[8 * m + 2 * i], scores[8 * m + 2 * i + 1]);
}

// Rows from `first` on of a matrix of kRows rows become zeros, because 0 * NaN is NaN. Both
// warpgroups write them; each reads them behind its own barrier.
template <int kRows>
__device__ inline void clear_rows(uint8* matrix, int first) {
#pragma unroll
  for (int box = 0; box < kHeadDim / 64; ++box) {
    uint4* const rows = (uint4*)(matrix + (box * kRows + first) * kRow);
    for (int i = threadIdx.x % 128; i < (kRows - first) * (kRow / 16); i += 128)
      rows[i] = make_uint4(0, 0, 0, 0);
  }
}

struct BackwardConsumer {
  BackwardBuffers buffers;
  const KeyTile& tile;
  int group;       // warpgroup
  int key;         // of the thread's first row; the second is 8 below
  float exponent;  // scale * log2(e)
  int parity = 0;  // buffer of dS

  __device__ BackwardConsumer(const BackwardBuffers& buffers, const KeyTile& tile, int group,
                              float scale)
      : buffers(buffers),
        tile(tile),
        group(group),
        key(tile.first_key + 64 * group + (int)threadIdx.x / 32 % 4 * 16 +
            (int)threadIdx.x % 32 / 4),
        exponent(scale * 1.44269504f) {}

  __device__ const uint8* own_rows(const uint8* keys) const { return keys + group * 64 * kRow; }

  // Scores become weights.
  __device__ void exponentiate(ScoreMma::Fragment& scores) const {
    const float2* const log_sums = (const float2*)buffers.own_log_sums() + threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < kBlockM / 8; ++j) {
      const float2 of_rows = log_sums[4 * j];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[4 * j + i];
        score = exp2_approx(fmaf(score, exponent, -(i % 2 == 0 ? of_rows.x : of_rows.y)));
      }
    }
  }
  // dS = P (dP - delta).
  __device__ void differentiate(const ScoreMma::Fragment& weights,
                                ScoreMma::Fragment& gradients) const {
    const float2* const deltas = (const float2*)buffers.own_deltas() + threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < kBlockM / 8; ++j) {
      const float2 of_rows = deltas[4 * j];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& gradient = gradients[4 * j + i];
        gradient = weights[4 * j + i] * (gradient - (i % 2 == 0 ? of_rows.x : of_rows.y));
      }
    }
  }
  // Pairs that attention does not see: P and dS are 0, whatever Q, K, V and dO hold there.
  __device__ void mask(int block, ScoreMma::Fragment& weights,
                       ScoreMma::Fragment& gradients) const {
    const int row = block * kBlockM + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int own = key + 8 * r;
      const int begin = tile.mask.first_row(own) - row, end = tile.mask.end_row(own) - row;
#pragma unroll
      for (int j = 0; j < kBlockM / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (8 * j + i < begin || 8 * j + i >= end)
            weights[4 * j + 2 * r + i] = gradients[4 * j + 2 * r + i] = 0;
    }
  }
  // dS^T to shared memory, rows are keys.
  __device__ void store_scores(uint8* to, const PackedScores& packed) const {
    // The compiler must not keep the addresses in registers during the mainloop.
    const int swizzle = opaque((int)threadIdx.x % 32 / 4);
    uint8* const own = to + key % kBlockN * kRow + (int)threadIdx.x % 4 * 4;
#pragma unroll
    for (int m = 0; m < kBlockM / 16; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int piece = 2 * m + i / 2;
        *(uint32*)(own + piece / 8 * kBlockN * kRow + i % 2 * 8 * kRow +
                   ((piece % 8) ^ swizzle) * 16) = packed[m][i];
      }
  }
  __device__ void add_query_gradient(float* to, const QueryMma::Fragment& gradient) const {
    float* const own = to + group * 64 * 64 + threadIdx.x % 128 * 4;
#pragma unroll
    for (int i = 0; i < QueryMma::kN / 2; i += 4)
      red_add(own + i * 128, gradient[i], gradient[i + 1], gradient[i + 2], gradient[i + 3]);
  }

  // A block of rows past their length has its last rows cleared.
  __device__ void clear_absent_rows(int block) const {
    if constexpr (kHas_seq_len_q) {
      const int rows = tile.mask.rows - block * kBlockM;
      if (rows >= kBlockM) return;
      buffers.gradients.consumer_wait();
      clear_rows<kBlockM>(buffers.queries.buffer(), rows);
      clear_rows<kBlockM>(buffers.gradients.buffer(), rows);
      fence_proxy_async();
      group_barrier<128>(group);
    }
  }

  // One block of rows; `d_q` is its part of the scratch.
  __device__ void step(int block, float* d_q, KeyGradients& sums) {
    ScoreMma::Fragment weights, gradients;
    PackedScores packed_weights, packed_gradients;
    uint8* const scores = buffers.scores + parity * kScoreBytes;
    parity ^= 1;

    buffers.queries.consumer_wait();
    clear_absent_rows(block);
    issue_scores(own_rows(buffers.keys), buffers.queries.buffer(), weights);
    buffers.gradients.consumer_wait();
    issue_scores(own_rows(buffers.values), buffers.gradients.buffer(), gradients);
    wgmma_wait_group<1>();
    fence_operand(weights);
    exponentiate(weights);
    // Ends a basic block: the assembler would wait for dP before it computes the exponentials. dO
    // has arrived, this does not wait.
    fence_operand(weights);
    buffers.gradients.consumer_wait();
    wgmma_wait_group<0>();
    fence_operand(gradients);
    differentiate(weights, gradients);
    if (tile.needs_mask(block)) mask(block, weights, gradients);
    pack_scores(weights, packed_weights);
    pack_scores(gradients, packed_gradients);

    fence_operand(packed_weights);
    fence_operand(sums.values);
    issue_key_gradient(packed_weights, buffers.gradients.buffer(), sums.values);
    store_scores(scores, packed_gradients);
    fence_proxy_async();
    group_barrier<kConsumers * 128>(kConsumers);
    QueryMma::Fragment of_rows;
    issue_query_gradient(scores, buffers.keys, group, of_rows);
    fence_operand(packed_gradients);
    fence_operand(sums.keys);
    issue_key_gradient(packed_gradients, buffers.queries.buffer(), sums.keys);
    wgmma_wait_group<2>();
    buffers.gradients.consumer_release(buffers.gradients.stage);
    buffers.gradients.next();
    wgmma_wait_group<1>();
    fence_operand(of_rows);
    add_query_gradient(d_q, of_rows);
    wgmma_wait_group<0>();
    fence_operand(sums.keys);
    fence_operand(sums.values);
    buffers.queries.consumer_release(buffers.queries.stage);
    buffers.queries.next();
  }

  // All rows that see the keys, at least one.
  __device__ void differentiate_keys(const Args& args, KeyGradients& sums) {
    wait_for(buffers.key_barriers, 0);
    wait_for(buffers.key_barriers + 1, 0);
    const int seen = tile.mask.keys - tile.first_key;
    if (kHas_seq_len_kv && seen < kBlockN) {
      clear_rows<kBlockN>(buffers.keys, seen);
      clear_rows<kBlockN>(buffers.values, seen);
      fence_proxy_async();
      group_barrier<kConsumers * 128>(kConsumers);
    }
    const int heads = (int)args.heads_of_key;
    int block = tile.blocks.begin;
    int first_tile = (tile.batch * (int)args.heads + tile.key_head * heads) * (int)args.tiles_m;
    // One loop: two nested ones cost the registers of another copy of the sums.
#pragma unroll 1
    while (true) {
      const int row_tile = first_tile + block;
      step(block, (float*)args.d_q + (int64)row_tile * (kBlockM * kHeadDim), sums);
      if (++block < tile.blocks.end) continue;
      block = tile.blocks.begin;
      first_tile += (int)args.tiles_m;
      if (first_tile % (heads * (int)args.tiles_m) == 0) break;
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_backward(const __grid_constant__ Args args) {
  const BackwardBuffers buffers(aligned_shared_memory());
  start_barriers([&] { buffers.init(); });
  const KeyTile tile = KeyTile::of_cta(args);
  const int group = own_group();
  if (group >= kConsumers) {
    setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x % 128 == 0 && tile.blocks.begin < tile.blocks.end)
      produce(args, buffers, tile);
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    KeyGradients sums;
    BackwardConsumer consumer(buffers, tile, group, score_scale(args));
    if (tile.blocks.begin < tile.blocks.end) consumer.differentiate_keys(args, sums);
    store_key_gradients(args, consumer.key, sums);
  }
}
