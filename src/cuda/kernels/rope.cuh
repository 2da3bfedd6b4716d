// Rotary position embedding. A CTA computes the cosines and sines of kPositions positions into
// shared memory and rotates the rows of several heads with them, vector by vector.
// The engine prints before it: R, Index, Args; kThreads, kVector, kPairs, kPositions, kInterleaved,
// kInverse, kGiven, kHeadsInside; x_of, store_y; cos_of and sin_of; frequency_of and position_of.
#include "lib/elements.cuh"
#include "lib/philox.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

static const int kAngles = kPositions * (kPairs > 0 ? kPairs : 1);

// Sine and cosine of |x| <= pi / 4 by their Taylor series, whose remainders are below 1e-8. sinf
// and cosf keep a path for large arguments, which takes local memory.
__device__ inline float sine_of_eighth(float x) {
  const float z = x * x;
  const float rest = 8.3333333e-3f + z * (-1.9841270e-4f + z * 2.7557319e-6f);
  return x + x * z * (-1.6666667e-1f + z * rest);
}
__device__ inline float cosine_of_eighth(float x) {
  const float z = x * x;
  const float rest = 4.1666667e-2f + z * (-1.3888889e-3f + z * (2.4801587e-5f - z * 2.7557319e-7f));
  return 1 - z / 2 + z * z * rest;
}

// Cosine and sine of an angle reduced to an eighth of a turn in double precision: pi / 2 in two
// parts, the first of 33 bits.
__device__ inline void turn_of(double angle, float& cosine, float& sine) {
  const double quarters = rint(angle * 0.6366197723675814);
  double rest = fma(quarters, -1.5707963267341256, angle);
  rest = fma(quarters, -6.077100506506192e-11, rest);
  const float c = cosine_of_eighth((float)rest), s = sine_of_eighth((float)rest);
  const int quadrant = (int)((int64)quarters & 3);
  cosine = quadrant % 2 == 0 ? c : s;
  sine = quadrant % 2 == 0 ? s : c;
  if (quadrant == 1 || quadrant == 2) cosine = -cosine;
  if (quadrant >= 2) sine = -sine;
}
__device__ inline void turn_of(double angle, double& cosine, double& sine) {
  cosine = cos(angle);
  sine = sin(angle);
}

struct Turns {
  R cosines[kAngles], sines[kAngles];
};

__device__ inline void fill_turns(const Args& args, Turns& turns, Index batch, Index first) {
  for (int i = threadIdx.x; i < kPositions * kPairs; i += kThreads) {
    const Index position = first + i / kPairs, pair = i % kPairs;
    if (position >= (Index)args.length) continue;
    R cosine[1], sine[1];
    if constexpr (kGiven) {
      const Index at[4] = {batch, 0, position, pair};
      cos_of<1>(args, at, cosine);
      sin_of<1>(args, at, sine);
    } else {
      const Index at[2] = {batch, position};
      turn_of((double)position_of(args, at) * frequency_of(pair), cosine[0], sine[0]);
      cosine[0] *= (R)args.scale;
      sine[0] *= (R)args.scale;
    }
    turns.cosines[i] = cosine[0];
    turns.sines[i] = kInverse ? -sine[0] : sine[0];
  }
}

// The vector of kCount pairs (halves) or kCount / 2 pairs (interleaved) from `column` on.
template <int kCount>
__device__ inline void rotate(const Args& args, Index (&at)[4], int column, const R* cosines,
                              const R* sines) {
  if constexpr (kInterleaved && kCount > 1) {
    R v[kCount];
    at[3] = column;
    x_of<kCount>(args, at, v);
#pragma unroll
    for (int l = 0; l < kCount; l += 2) {
      const R c = cosines[(column + l) / 2], s = sines[(column + l) / 2], u = v[l], w = v[l + 1];
      v[l] = u * c - w * s;
      v[l + 1] = w * c + u * s;
    }
    store_y<kCount>(args, at, v);
  } else {
    const int pair = kInterleaved ? column / 2 : column;
    R u[kCount], v[kCount];
    at[3] = column;
    x_of<kCount>(args, at, u);
    at[3] = column + (kInterleaved ? 1 : kPairs);
    x_of<kCount>(args, at, v);
#pragma unroll
    for (int l = 0; l < kCount; ++l) {
      const R c = cosines[pair + l], s = sines[pair + l], first = u[l] * c - v[l] * s;
      v[l] = v[l] * c + u[l] * s;
      u[l] = first;
    }
    store_y<kCount>(args, at, v);
    at[3] = column;
    store_y<kCount>(args, at, u);
  }
}

template <int kCount>
__device__ inline void rope_tile(const Args& args) {
  // Columns per item, and items per row: rotated ones first, then copied ones.
  constexpr int kStep = kInterleaved && kCount == 1 ? 2 : kCount;
  constexpr int kRotated = (kInterleaved ? 2 * kPairs : kPairs) / kStep;
  const int copied = ((int)args.columns - 2 * kPairs) / kCount, items = kRotated + copied;
  __shared__ Turns turns;

  Index block = blockIdx.x;
  const Index tile = block % (Index)args.tiles;
  block /= (Index)args.tiles;
  const Index chunk = block % (Index)args.chunks, group = block / (Index)args.chunks;
  const Index first = tile * kPositions;
  const int positions = min((int)kPositions, (int)((Index)args.length - first));
  const Index first_row = chunk * (Index)args.chunk_rows;
  const int rows = (int)min((int64)args.chunk_rows, (int64)args.rows - (int64)first_row);
  fill_turns(args, turns, group, first);
  __syncthreads();

  for (int i = threadIdx.x; i < items * positions * rows; i += kThreads) {
    const int item = i % items, rest = i / items;
    const int position = kHeadsInside ? rest / rows : rest % positions;
    const Index row = first_row + (kHeadsInside ? rest % rows : rest / positions);
    // Rows that share their turns: heads, of all batches unless each has positions of its own.
    const Index batch = group + row / (Index)args.heads;
    Index at[4] = {batch, row % (Index)args.heads, first + position, 0};
    if (item < kRotated) {
      rotate<kCount>(args, at, item * kStep, turns.cosines + position * kPairs,
                     turns.sines + position * kPairs);
    } else {
      R v[kCount];
      at[3] = 2 * kPairs + (item - kRotated) * kCount;
      x_of<kCount>(args, at, v);
      store_y<kCount>(args, at, v);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) rope(const __grid_constant__ Args args) {
  rope_tile<kVector>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    rope_elements(const __grid_constant__ Args args) {
  rope_tile<1>(args);
}
