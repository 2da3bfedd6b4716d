// Scaled dot-product attention by cp.async, ldmatrix and mma.sync (sm_80 on), after
// FlashAttention-2: a CTA computes kBlockM rows of one head. It walks over blocks of kBlockN keys
// from right to left: S = Q K^T, weights by an online softmax, O += P V. Scores and weights stay in
// registers: the accumulators of S, packed to 16 bits, are the A operand of P V. Generated code
// defines
//   Element                               of Q, K and V: f16 or bf16
//   kHeadDim, kValueDim                   D and Dv, at most 256
//   kBlockM, kBlockN, kWarps, kStages     tile; stages of K and V in shared memory: 1 or 2
//   kBlocks                               resident CTAs per SM
//   kScalesFirst                          scores are scaled in place: the scale may be negative
//   kChecksValues                         rows may not see keys that others of a tile see
//   kAccess                               bytes per copy of Q, K and V
//   kHasStats, kHasMax, kHasSumExp, kHasSink
//   scale_of(args), sink_of(args, h), store_stats(args, at, x), store_max, store_sum_exp
//   args.q, q_batch, q_head, q_row, q_element   address and strides of Q; the same for k and v
//   args.q_step, k_step, v_step                 row strides times RowLoader::kStep
//   args.batches, heads, magic_heads            extents; divider words, also magic_group_k, _v
//   args.factor_bits                            scale * log2(e) as the bits of a float
//   epilogue<kCount>(args, at, acc)             consumes O
// and what lib/attention_mask.cuh and lib/epilogue_rows.cuh read. This file follows these,
// sm80/attention_sources.cuh, attention_tile.cuh, attention_scores.cuh and attention_rows.cuh.
#include "lib/online_softmax.cuh"
#include "lib/ptx_mma.cuh"
#include "lib/ptx_opaque.cuh"

static const int kWarpM = kBlockM / kWarps, kFragmentsM = kWarpM / 16;
typedef RowTile<kBlockM, kHeadDim> TileQ;
typedef RowTile<kBlockN, kHeadDim> TileK;
typedef RowTile<kBlockN, kValueDim> TileV;
static const int kStageBytes = TileK::kBytes + TileV::kBytes;
static const int kScoreTiles = kBlockN / 8, kValueTiles = TileV::kColumns / 8;
static_assert(kBlockM % (16 * kWarps) == 0 && kBlockN % 16 == 0, "fragments do not share out");
static_assert(kWarps * kStagingBytes <= TileQ::kBytes + kStages * kStageBytes, "no staging room");

template <int kBytes>
struct Attention {
  typedef RowLoader<kBlockM, kHeadDim, kBytes> LoaderQ;
  typedef RowLoader<kBlockN, kHeadDim, kBytes> LoaderK;
  typedef RowLoader<kBlockN, kValueDim, kBytes> LoaderV;

  const Args& args;
  int batch;
  const KeySource keys;
  const ValueSource values;
  OnlineSoftmax<kFragmentsM, kHasMax || kHasSumExp> softmax;
  float output[kFragmentsM][kValueTiles][4];

  __device__ Attention(const Args& arguments, const TilePosition& position)
      : args(arguments),
        batch(position.batch),
        keys(key_rows(args, position)),
        values(value_rows(args, position)) {
    softmax.start_with(kHasSink ? sink_of(args, position.head) : minus_infinity());
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kValueTiles; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) output[i][j][e] = 0;
  }

  __device__ void run(const TilePosition& position) {
    const RowMask mask(args, batch);
    const KeyBlocks blocks = mask.template blocks<kBlockM, kBlockN>(position.row);
    if (blocks.end > blocks.begin) {
      LoaderQ::template load<true>(query_rows(args, position), shared_memory(), position.row,
                                   mask.rows);
      LoaderK::template load<true>(keys, keys_of(0), (blocks.end - 1) * kBlockN, mask.keys);
      if (kStages > 1) load_values<true>(blocks.end - 1, 0);
      cp_async_commit_group();
      int stage = 0;
#pragma unroll 1
      for (int block = blocks.end - 1; block >= blocks.begin; --block) {
        const bool is_last = block == blocks.begin;
        const bool is_masked =
            kHasBlockMask || block >= blocks.whole_end || block < blocks.whole_begin;
        if (!add_block(block, is_masked, is_last, stage)) return attend_by_row(args);
        stage = next_stage(stage);
      }
    }
    __syncthreads();
    finish();
  }

 private:
  // Stages are named by their offset.
  __device__ static uint8* keys_of(int stage) { return shared_memory() + TileQ::kBytes + stage; }
  __device__ static uint8* values_of(int stage) { return keys_of(stage) + TileK::kBytes; }
  __device__ static int next_stage(int stage) {
    return kStages == 1 ? 0 : stage == 0 ? kStageBytes : 0;
  }
  // Blocks to the left of the first one are whole.
  __device__ void load_keys(int block, int stage) const {
    LoaderK::template load<false>(keys, keys_of(stage), block * kBlockN, 0);
  }
  template <bool kChecked>
  __device__ void load_values(int block, int stage) const {
    const int end = kChecked ? RowMask(args, batch).keys : 0;
    LoaderV::template load<kChecked>(values, values_of(stage), block * kBlockN, end);
  }

  __device__ static int warp_row() { return fresh_thread() / 32 * kWarpM; }
  // log2(e), times the scale without kScalesFirst.
  __device__ float factor() const {
    return kScalesFirst ? kLog2E : __int_as_float((int)args.factor_bits);
  }
  // Of the two rows of a lane in fragment i.
  __device__ static int row_of(int i, int half) {
    return TilePosition::first_row() + warp_row() + 16 * i + 8 * half + fresh_thread() % 32 / 4;
  }

  // With two stages a block's keys and values arrive while the block before is computed; with one
  // stage, values arrive during Q K^T, and the next keys during the softmax and P V. Returns false
  // where values of a masked block are infinite or NaN: multiplied with a weight of 0, they would
  // reach rows that do not see them.
  __device__ bool add_block(int block, bool is_masked, bool is_last, int stage) {
    float scores[kFragmentsM][kScoreTiles][4] = {};
    cp_async_wait_group<0>();
    if constexpr (kStages > 1) {
      if (!are_finite(is_masked, stage)) return false;
      if (!is_last) {
        load_keys(block - 1, next_stage(stage));
        load_values<false>(block - 1, next_stage(stage));
        cp_async_commit_group();
      }
      multiply_keys(keys_of(stage), scores);
    } else {
      __syncthreads();
      if (is_masked)
        load_values<true>(block, stage);
      else
        load_values<false>(block, stage);
      cp_async_commit_group();
      multiply_keys(keys_of(stage), scores);
      cp_async_wait_group<0>();
      if (!are_finite(is_masked, stage)) return false;
      if (!is_last) {
        load_keys(block - 1, stage);
        cp_async_commit_group();
      }
    }
    if constexpr (kScalesFirst) scale(scores);
    if constexpr (kChangesScores)
      for_each_pair(block, scores, [&](const ScorePlace& place, float(&pair)[kPairs ? 2 : 1]) {
        finish_scores(args, place, pair);
      });
    if (is_masked) hide(block * kBlockN, scores);
    if constexpr (kHasBlockMask)
      for_each_pair(block, scores, [&](const ScorePlace& place, float(&pair)[kPairs ? 2 : 1]) {
#pragma unroll
        for (int l = 0; l < (kPairs ? 2 : 1); ++l)
          if (is_hidden(args, {place.batch, place.head, place.row, place.key + l}))
            pair[l] = minus_infinity();
      });
    if constexpr (KeySource::kIsPaged) hide_missing(block * kBlockN, keys, scores);
    if constexpr (ValueSource::kIsPaged) hide_missing(block * kBlockN, values, scores);
    softmax.add_block(factor(), scores, output);
    if constexpr (kHasDropout)
      for_each_pair(block, scores, [&](const ScorePlace& place, float(&pair)[kPairs ? 2 : 1]) {
        drop(args, place, pair);
      });
    multiply_values(values_of(stage), scores);
    return true;
  }

  // A barrier. Returns whether the values of the block have to be and are finite.
  __device__ bool are_finite(bool is_masked, int stage) const {
    if (kChecksValues && is_masked)
      return __syncthreads_or(LoaderV::has_nonfinite(Element(), values_of(stage))) == 0;
    __syncthreads();
    return true;
  }

  // scores += Q K^T
  __device__ void multiply_keys(const uint8* tile, float (&scores)[kFragmentsM][kScoreTiles][4]) {
    const uint8* const keys = lane_of_columns<TileK>(tile);
    const uint8* const queries = lane_of_rows<TileQ>(shared_memory(), warp_row());
#pragma unroll
    for (int d = 0; d < TileK::kColumns / 16; ++d) {
      uint32 a[kFragmentsM][4];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i)
        ldmatrix<false>(a[i], queries + 16 * i * TileQ::kPitch + 32 * d);
#pragma unroll
      for (int j = 0; j < kScoreTiles; j += 2) {
        uint32 b[4];
        ldmatrix<false>(b, keys + 8 * j * TileK::kPitch + 32 * d);
        multiply_pair(a, b, j, scores);
      }
    }
  }
  // output += P V
  __device__ void multiply_values(const uint8* tile,
                                  const float (&weights)[kFragmentsM][kScoreTiles][4]) {
    const uint8* const values = lane_of_rows<TileV>(tile, 0);
#pragma unroll
    for (int key = 0; key < kScoreTiles; key += 2) {
      uint32 a[kFragmentsM][4];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float* const pair = weights[i][key + r / 2] + r % 2 * 2;
          a[i][r] = narrow_pair(Element(), pair[0], pair[1]);
        }
#pragma unroll
      for (int j = 0; j < kValueTiles; j += 2) {
        uint32 b[4];
        ldmatrix<true>(b, values + 8 * key * TileV::kPitch + 16 * j);
        multiply_pair(a, b, j, output);
      }
    }
  }
  template <int kTiles>
  __device__ static void multiply_pair(const uint32 (&a)[kFragmentsM][4], const uint32 (&b)[4],
                                       int j, float (&sums)[kFragmentsM][kTiles][4]) {
    const uint32 left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
      multiply_add(Element(), sums[i][j], a[i], left);
      multiply_add(Element(), sums[i][j + 1], a[i], right);
    }
  }

  template <class Body>
  __device__ static void for_each_row(Body body) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) body(i, half);
  }

  // Calls body(place, elements) for the scores of this lane that exist, two neighbouring keys at a
  // time if kPairs.
  template <class Body>
  __device__ void for_each_pair(int block, float (&scores)[kFragmentsM][kScoreTiles][4],
                                Body body) const {
    const TilePosition position(args);
    const int first_row = row_of(0, 0), first_key = block * kBlockN + fresh_thread() % 4 * 2;
    const int kCount = kPairs ? 2 : 1;
    for_each_row([&](int i, int half) {
      const int row = first_row + 16 * i + 8 * half;
      if (row >= (int)args.queries) return;
#pragma unroll
      for (int j = 0; j < kScoreTiles; ++j)
#pragma unroll
        for (int e = 0; e < 2; e += kCount) {
          const int key = first_key + 8 * j + e;
          if (key < (int)args.keys)
            body({position.batch, position.head, row, key},
                 *(float(*)[kCount])(scores[i][j] + 2 * half + e));
        }
    });
  }

  __device__ void scale(float (&scores)[kFragmentsM][kScoreTiles][4]) const {
    const float by = scale_of(args);
    for_each_row([&](int i, int half) {
#pragma unroll
      for (int j = 0; j < kScoreTiles; ++j)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) scores[i][j][e] *= by;
    });
  }
  // Scores of keys that a row does not see become -inf.
  __device__ void hide(int first_key, float (&scores)[kFragmentsM][kScoreTiles][4]) const {
    const RowMask mask(args, batch);
    first_key += fresh_thread() % 4 * 2;
    const int first_row = row_of(0, 0);
    for_each_row([&](int i, int half) {
      const int row = first_row + 16 * i + 8 * half;
      const int begin = mask.begin(row) - first_key, end = mask.end(row) - first_key;
#pragma unroll
      for (int j = 0; j < kScoreTiles; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (8 * j + e < begin || 8 * j + e >= end) scores[i][j][2 * half + e] = minus_infinity();
    });
  }
  // The same for keys without a page.
  template <class Source>
  __device__ void hide_missing(int first_key, const Source& source,
                               float (&scores)[kFragmentsM][kScoreTiles][4]) const {
    first_key += fresh_thread() % 4 * 2;
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = first_key + 8 * j + e;
        if (key >= (int)args.keys || source.has(key)) continue;
        for_each_row([&](int i, int half) { scores[i][j][2 * half + e] = minus_infinity(); });
      }
  }

  // Divides by the sums of weights and stores O and the statistics. Rows without keys are 0.
  __device__ void finish() {
    forget_memory();
    const TilePosition position(args);
    const RowMask mask(args, position.batch);
    const float scale = kScalesFirst ? 1.f : scale_of(args);
    for_each_row([&](int i, int half) {
      const int row = row_of(i, half);
      const bool exists = row < mask.rows;
      const float sum = softmax.total(i, half);
      const bool is_empty = !exists || softmax.is_empty(i, half, sum);
      const float by = is_empty ? 0.f : keep_factor(args) / sum;
#pragma unroll
      for (int j = 0; j < kValueTiles; ++j)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          output[i][j][e] = is_empty ? 0.f : output[i][j][e] * by;
      if (threadIdx.x % 4 == 0 && row < (int)args.queries)
        store_statistics(args, position, row, is_empty, softmax.reference[i][half] * scale,
                         softmax.maximum(i, half) * scale, sum);
    });
    uint8* const staging = shared_memory() + threadIdx.x / 32 * kStagingBytes;
    const auto place = [&](Index row, Index(&at)[kRank]) {
      at[0] = (Index)position.batch;
      at[1] = (Index)position.head;
      at[2] = row;
    };
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
      finish_rows<TileV::kColumns, kBytes == 2 ? 1 : kVector>(
          args, staging, (const float(&)[4 * kValueTiles])output[i],
          (Index)(position.row + warp_row() + 16 * i), (Index)args.queries, (Index)0,
          (Index)kValueDim, place);
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    attention_sm80(const __grid_constant__ Args args) {
  const TilePosition position(args);
  if (!position.exists(args)) return;
  if (kAccess == 2 || is_aligned(args, position))
    Attention<kAccess>(args, position).run(position);
  else
    Attention<2>(args, position).run(position);
}

// Fallback for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_sm80_elements(const __grid_constant__ Args args) {
  const TilePosition position(args);
  if (position.exists(args)) Attention<2>(args, position).run(position);
}
