// What turns q k^T into scores, and weights into kept weights, element by element (sm_80
// attention). Generated code defines
//   kHasSoftCap, kHasModifier, kHasBias, kHasAlibi, kHasBlockMask, kHasDropout
//   kPairs                                   neighbouring even keys may be loaded together
//   modified_score(values)                   the score program
//   load_bias<kCount>(args, at, x), load_score_input0 ... 3, load_block_mask, load_dropout_mask
//   kHasDropoutMask, dropout_seed(args), dropout_offset(args)
#pragma once

#include "lib/online_softmax.cuh"
#include "lib/philox.cuh"
#include "lib/ptx_math.cuh"

static const bool kChangesScores = kHasSoftCap || kHasModifier || kHasBias || kHasAlibi;

// A head of a batch, and the first of kCount keys of a row.
struct ScorePlace {
  int batch, head, row, key;
};

// cap * tanh(x / cap), with an absolute error of about 2^-22 cap.
__device__ inline float soft_capped(float x, float cap) {
  const float power = exp2_approx(2.f * kLog2E / cap * x);
  return cap - 2.f * cap * reciprocal_approx(power + 1.f);
}

__device__ inline float alibi_slope(const Args& args, int head) {
  const int power = (int)args.alibi_power;
  return head < power ? exp2f(-8.f * (float)(head + 1) / (float)power)
                      : exp2f(-4.f * (float)(2 * (head - power) + 1) / (float)power);
}

// From scaled products to scores. The place exists; without kPairs kCount is 1.
template <int kCount>
__device__ inline void finish_scores(const Args& args, const ScorePlace& place,
                                     float (&scores)[kCount]) {
  const Index at[4] = {(Index)place.batch, (Index)place.head, (Index)place.row, (Index)place.key};
  if constexpr (kHasSoftCap) {
#pragma unroll
    for (int l = 0; l < kCount; ++l) scores[l] = soft_capped(scores[l], (float)args.soft_cap);
  }
  if constexpr (kHasModifier) {
    R inputs[4][kCount];
    load_score_input0<kCount>(args, at, inputs[0]);
    load_score_input1<kCount>(args, at, inputs[1]);
    load_score_input2<kCount>(args, at, inputs[2]);
    load_score_input3<kCount>(args, at, inputs[3]);
#pragma unroll
    for (int l = 0; l < kCount; ++l) {
      const R values[10] = {scores[l],         (R)place.row,    (R)(place.key + l), (R)place.batch,
                            (R)place.head,     inputs[0][l],    inputs[1][l],       inputs[2][l],
                            inputs[3][l],      (R)0};
      scores[l] = modified_score(values);
    }
  }
  if constexpr (kHasBias) {
    R bias[kCount];
    load_bias<kCount>(args, at, bias);
#pragma unroll
    for (int l = 0; l < kCount; ++l) scores[l] += bias[l];
  }
  if constexpr (kHasAlibi) {
    const float slope = alibi_slope(args, place.head);
#pragma unroll
    for (int l = 0; l < kCount; ++l) scores[l] += slope * (float)(place.key + l - place.row);
  }
}

// Whether the block mask hides a score.
__device__ inline bool is_hidden(const Args& args, const ScorePlace& place) {
  if constexpr (!kHasBlockMask) return false;
  const Index at[4] = {(Index)place.batch, (Index)place.head,
                       (Index)(place.row / (int)args.block_rows),
                       (Index)(place.key / (int)args.block_columns)};
  R seen[1];
  load_block_mask<1>(args, at, seen);
  return seen[0] == (R)0;
}

// Sets weights that dropout drops to 0.
template <int kCount>
__device__ inline void drop(const Args& args, const ScorePlace& place, float (&weights)[kCount]) {
  const Index at[4] = {(Index)place.batch, (Index)place.head, (Index)place.row, (Index)place.key};
  if constexpr (kHasDropoutMask) {
    R kept[kCount];
    load_dropout_mask<kCount>(args, at, kept);
#pragma unroll
    for (int l = 0; l < kCount; ++l)
      if (kept[l] == (R)0) weights[l] = 0.f;
  } else {
    const int64 position =
        (((int64)place.batch * args.heads + place.head) * args.queries + place.row) * args.keys +
        place.key;
    const RandomStream<SeedKeys> stream = {{(uint64)dropout_seed(args)},
                                           (uint64)dropout_offset(args)};
    uint32 bits[kCount];
    random_row<false>(stream, position, bits);
#pragma unroll
    for (int l = 0; l < kCount; ++l)
      if (!(uniform_open(bits[l]) < (float)args.keep_probability)) weights[l] = 0.f;
  }
}
