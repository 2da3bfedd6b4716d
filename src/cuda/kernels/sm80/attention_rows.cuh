// Attention row by row on CUDA cores, for tiles that see an infinite or NaN value in part: such a
// value must not reach rows that do not see it, not even with a weight of 0 (sm_80 attention).
#pragma once

#include "lib/online_softmax.cuh"
#include "lib/ptx_maximum.cuh"

// Of a row that sees nothing: -inf, -inf and 0. `reference`: what the weights in `sum` are relative
// to, at most a slack below `maximum`.
__device__ inline void store_statistics(const Args& args, const TilePosition& position, int row,
                                        bool is_empty, float reference, float maximum, float sum) {
  const Index at[4] = {(Index)position.batch, (Index)position.head, (Index)row, 0};
  if constexpr (kHasStats)
    store_stats(args, at, is_empty ? minus_infinity() : reference + logf(sum));
  if constexpr (kHasMax) store_max(args, at, is_empty ? minus_infinity() : maximum);
  if constexpr (kHasSumExp)
    store_sum_exp(args, at, is_empty ? 0.f : sum * exp2_approx((reference - maximum) * kLog2E));
}

// Of weights that dropout keeps.
__device__ inline float keep_factor(const Args& args) {
  return kHasDropout ? (float)args.keep_factor : 1.f;
}

__device__ inline float warp_max_or_nan(float x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x = max_or_nan(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}

// One row of a warp: a lane computes one score of 32, and every 32nd element of the result.
struct RowAttention {
  static const int kOwned = (kValueDim + 31) / 32;
  float maximum, sum, output[kOwned];

  __device__ void run(const Args& args, const TilePosition& position, int row,
                      const uint16* query, int query_element, const KeySource& keys,
                      const ValueSource& values, int begin, int end, float sink) {
    const int lane = (int)threadIdx.x % 32;
    maximum = sink;
    sum = first_weight(sink);
#pragma unroll
    for (int c = 0; c < kOwned; ++c) output[c] = 0;
#pragma unroll 1
    for (int first = begin; first < end; first += 32) {
      const ScorePlace place = {position.batch, position.head, row, first + lane};
      const bool is_seen = place.key < end && !is_hidden(args, place) && keys.has(place.key) &&
                           values.has(place.key);
      float score[1] = {minus_infinity()};
      if (is_seen) {
        score[0] = scale_of(args) * dot(query, query_element, keys, place.key);
        finish_scores(args, place, score);
      }
      const float before = maximum;
      maximum = max_or_nan(maximum, warp_max_or_nan(score[0]));
      const float shift = maximum == minus_infinity() ? 0.f : maximum;
      const float ratio = exp2_approx((before - shift) * kLog2E);
      float weight[1] = {is_seen ? exp2_approx((score[0] - shift) * kLog2E) : 0.f};
      sum = sum * ratio + warp_sum(weight[0]);
      if constexpr (kHasDropout)
        if (is_seen) drop(args, place, weight);
      const uint32 seen = __ballot_sync(~0u, is_seen);
#pragma unroll
      for (int c = 0; c < kOwned; ++c) output[c] *= ratio;
#pragma unroll 1
      for (int key = first; key < min(first + 32, end); ++key) {
        const float by = __shfl_sync(~0u, weight[0], key - first);
        if ((seen >> (key - first) & 1) == 0) continue;
        const uint16* value = values.at(key);
        if (value == nullptr) continue;
        value += (int64)lane * values.element;
#pragma unroll
        for (int c = 0; c < kOwned; ++c)
          if (32 * c + lane < kValueDim)
            output[c] += by * widen(Element(), value[(int64)(32 * c) * values.element]);
      }
    }
  }

 private:
  // Rows that do not exist are zeros.
  __device__ static float dot(const uint16* query, int query_element, const KeySource& keys,
                              int key) {
    const uint16* const row = keys.at(key);
    float total = 0;
    if (query == nullptr || row == nullptr) return total;
#pragma unroll 4
    for (int d = 0; d < kHeadDim; ++d)
      total += widen(Element(), query[(int64)d * query_element]) *
               widen(Element(), row[(int64)d * keys.element]);
    return total;
  }
};

// The whole tile of a CTA.
__device__ inline void attend_by_row(const Args& args) {
  const TilePosition position(args);
  const RowMask mask(args, position.batch);
  const QuerySource queries = query_rows(args, position);
  const KeySource keys = key_rows(args, position);
  const ValueSource values = value_rows(args, position);
  const int lane = (int)threadIdx.x % 32, end = min(position.row + kBlockM, (int)args.queries);
  RowAttention attention;
#pragma unroll 1
  for (int row = position.row + (int)threadIdx.x / 32; row < end; row += kWarps) {
    const bool exists = row < mask.rows;
    attention.run(args, position, row, queries.at(row), queries.element, keys, values,
                  mask.begin(row), exists ? mask.end(row) : 0,
                  kHasSink && exists ? sink_of(args, position.head) : minus_infinity());
    const bool is_empty = attention.maximum == minus_infinity();
    if (lane == 0)
      store_statistics(args, position, row, is_empty, attention.maximum, attention.maximum,
                       attention.sum);
#pragma unroll
    for (int c = 0; c < RowAttention::kOwned; ++c) {
      const Index at[4] = {(Index)position.batch, (Index)position.head, (Index)row,
                           (Index)(32 * c + lane)};
      if (32 * c + lane >= kValueDim) break;
      const float by = keep_factor(args) / attention.sum;
      R result[1] = {is_empty ? 0.f : attention.output[c] * by};
      Held<1> held;
      hold<1>(args, at, held);
      epilogue<1>(args, at, result, held);
    }
  }
}
