// Online softmax of fused attention on the accumulators of S = Q K^T, in powers of two. A thread
// has two rows, 8 apart, and of every 8 columns two: scores[4 j + 2 r + i] is row r, column
// 8 j + 2 (lane % 4) + i. The four lanes of a quad share the rows.
//
// kScalesScores: scores are scaled before they are compared, because the scale is known at run time
// only or is not positive. Otherwise scaling is part of the exponent.
#include "lib/elements.cuh"
#include "lib/ptx_math.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/quad_rows.cuh"

static const int kScoreCount = kBlockN / 2;

__device__ inline float minus_infinity() { return -__int_as_float(0x7f800000); }

__device__ inline float quad_max(float x) {
  x = max_or_nan(x, __shfl_xor_sync(~0u, x, 1));
  return max_or_nan(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Scores of unseen keys become -inf. `row` is the thread's first row, `first_key` column 0.
__device__ inline void mask_scores(const RowMask& mask, int row, int first_key,
                                   float (&scores)[kScoreCount]) {
  const int column = first_key + (int)threadIdx.x % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int begin = mask.begin(row + 8 * r) - column, end = mask.end(row + 8 * r) - column;
#pragma unroll
    for (int j = 0; j < kBlockN / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = 8 * j + i;
        if (key >= end || (kHasLeftBound && key < begin))
          scores[4 * j + 2 * r + i] = minus_infinity();
      }
  }
}

struct OnlineSoftmax {
  float largest[2];  // of the scores seen so far
  float sum[2];      // of this thread's weights, relative to `largest`
  float exponent;    // log2(e) * scale: weights are 2^(exponent * (score - largest))

  __device__ explicit OnlineSoftmax(float exponent) : exponent(exponent) {
    largest[0] = largest[1] = minus_infinity();
    sum[0] = sum[1] = 0;
  }
  // Without a seen key 0, so that weights are 2^-inf, not NaN.
  __device__ float shift(int r) const {
    return largest[r] == minus_infinity() ? 0 : largest[r] * exponent;
  }

  // Turns the scores of a block of keys into weights. `rescale`: factors of earlier sums, which
  // were relative to an earlier maximum.
  __device__ void update(float (&scores)[kScoreCount], float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Two chains per row hide the latency.
      float larger[2] = {largest[r], scores[2 * r + 1]};
#pragma unroll
      for (int j = 0; j < kBlockN / 8; ++j) {
        larger[0] = max_or_nan(larger[0], scores[4 * j + 2 * r]);
        if (j > 0) larger[1] = max_or_nan(larger[1], scores[4 * j + 2 * r + 1]);
      }
      const float before = largest[r];
      largest[r] = quad_max(max_or_nan(larger[0], larger[1]));
      rescale[r] = exp2_approx(fmaf(before, exponent, -shift(r)));
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float shift_r = shift(r);
      float sums[2] = {sum[r] * rescale[r], 0};
#pragma unroll
      for (int j = 0; j < kBlockN / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& score = scores[4 * j + 2 * r + i];
          score = exp2_approx(fmaf(score, exponent, -shift_r));
          sums[i] += score;
        }
      sum[r] = sums[0] + sums[1];
    }
  }

  // Sums of whole rows, at the end.
  __device__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = quad_sum(sum[r]);
  }
};

// The weights of 16 keys are, packed into pairs, the A fragment of an m64nNk16 wgmma.
typedef uint32 PackedWeights[kBlockN / 16][4];
__device__ inline void pack_weights(const float (&weights)[kScoreCount], PackedWeights& packed) {
#pragma unroll
  for (int k = 0; k < kBlockN / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      packed[k][i] = pack_pair(Element(), weights[8 * k + 2 * i], weights[8 * k + 2 * i + 1]);
}
