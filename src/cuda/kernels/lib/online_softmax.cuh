// Online softmax over blocks of scores in the accumulator layout of mma.sync and wgmma: with g =
// lane / 4 and t = lane % 4, tile[j] holds columns 8 j + 2 t and 8 j + 2 t + 1 of row g (elements 0
// and 1) and of row g + 8 (elements 2 and 3).
#pragma once

#include "lib/ptx_math.cuh"
#include "lib/ptx_maximum.cuh"

__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
static const float kLog2E = 1.44269504f;
__device__ inline float minus_infinity() { return -__int_as_float(0x7f800000); }

// The weight of the first score of a row: 1, or 0 for -inf, or NaN for infinity and NaN.
__device__ inline float first_weight(float score) {
  return score == minus_infinity() ? 0.f : 1.f + (score - score);
}

// The softmax of kFragments x 16 rows per warp. Weights are exp2(factor * (score - reference)),
// factor > 0. The reference of a row follows its maximum only when weights would exceed
// 2^kSlack: results are then rescaled, which is rare after the first blocks. The reference ignores
// scores of NaN; the sum does not.
template <int kFragments, bool kKeepsMaximum>
struct OnlineSoftmax {
  static const int kSlack = 8;
  float reference[kFragments][2];  // -inf: no score above -inf yet
  float sum[kFragments][2];        // of the weights that this lane computed
  // With kKeepsMaximum: the maximum, NaN where a score is.
  float largest[kKeepsMaximum ? kFragments : 1][2];

  // `score`: of an additional key without a value, such as a sink; -inf for none. The first lane of
  // the four that share a row counts it.
  __device__ void start_with(float score) {
    const float weight = threadIdx.x % 4 == 0 ? first_weight(score) : 0.f;
#pragma unroll
    for (int i = 0; i < kFragments; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        reference[i][half] = fmaxf(minus_infinity(), score);
        sum[i][half] = weight;
        if constexpr (kKeepsMaximum) largest[i][half] = score;
      }
  }

  // Replaces the scores of a block by weights and rescales the output accumulators if necessary.
  template <int kTiles, int kOutputTiles>
  __device__ void add_block(float factor, float (&scores)[kFragments][kTiles][4],
                            float (&output)[kFragments][kOutputTiles][4]) {
    float maximum[kFragments][2];
    bool exceeds = false;
#pragma unroll
    for (int i = 0; i < kFragments; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = larger(scores[i][0][2 * half], scores[i][0][2 * half + 1]);
#pragma unroll
        for (int j = 1; j < kTiles; ++j)
          most = larger(most, larger(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
        most = larger(most, __shfl_xor_sync(~0u, most, 1));
        maximum[i][half] = larger(most, __shfl_xor_sync(~0u, most, 2));
        exceeds = exceeds || (maximum[i][half] - reference[i][half]) * factor > (float)kSlack;
        if constexpr (kKeepsMaximum) largest[i][half] = larger(largest[i][half], maximum[i][half]);
      }
    if (__any_sync(~0u, exceeds)) rescale(factor, maximum, output);
#pragma unroll
    for (int i = 0; i < kFragments; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float shift = shift_of(factor, i, half);
#pragma unroll
        for (int j = 0; j < kTiles; ++j)
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            scores[i][j][e] = exp2_approx(fmaf(scores[i][j][e], factor, shift));
            sum[i][half] += scores[i][j][e];
          }
      }
  }

  // The maximum; without kKeepsMaximum something else.
  __device__ float maximum(int i, int half) const {
    return kKeepsMaximum ? largest[i][half] : reference[i][half];
  }
  // Sum over the four lanes of a row.
  __device__ float total(int i, int half) const { return quad_sum(sum[i][half]); }
  // Whether the row has no score, or only scores of -inf.
  __device__ bool is_empty(int i, int half, float total) const {
    return reference[i][half] == minus_infinity() && total == 0.f;
  }

  // -factor * reference; 0 for rows without a score, whose weights are then exp2(-inf).
  __device__ float shift_of(float factor, int i, int half) const {
    return reference[i][half] == minus_infinity() ? 0.f : -(reference[i][half] * factor);
  }

 private:
  __device__ static float larger(float a, float b) {
    return kKeepsMaximum ? max_or_nan(a, b) : fmaxf(a, b);
  }
  template <int kOutputTiles>
  __device__ void rescale(float factor, const float (&maximum)[kFragments][2],
                          float (&output)[kFragments][kOutputTiles][4]) {
#pragma unroll
    for (int i = 0; i < kFragments; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float before = reference[i][half];
        reference[i][half] = fmaxf(before, maximum[i][half]);
        const float ratio = exp2_approx(fmaf(before, factor, shift_of(factor, i, half)));
        sum[i][half] *= ratio;
#pragma unroll
        for (int j = 0; j < kOutputTiles; ++j) {
          output[i][j][2 * half] *= ratio;
          output[i][j][2 * half + 1] *= ratio;
        }
      }
  }
};
