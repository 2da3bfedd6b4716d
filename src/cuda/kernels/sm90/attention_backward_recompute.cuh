// Values of NaN and infinity must not reach the gradients of rows and keys that attention does not
// pair with theirs, but the tensor cores multiply them with a dS or P of 0, which is NaN. Beyond
// the lengths they are cleared; those hidden by the bounds show as NaN in a gradient. A warp
// computes such rows of dQ, dK and dV again from memory, without the hidden pairs. Requires args.q,
// args.k, args.v and args.d_o with strides [batch, head, row], args.log_sums and args.deltas, and
// sm90/attention_strips.cuh.
#include "lib/ptx_math.cuh"
#include "lib/ptx_opaque.cuh"

static const int kStrips = kHeadDim / 32;
typedef float Strip[kStrips];

// A row of Q and dO, or of K and V.
struct RowOperands {
  Strip first, second;

  __device__ static RowOperands of_query(const Args& args, int batch, int head, int row, int lane) {
    RowOperands result;
    load_strip(row_of(args.q, args.q_strides, batch, head, row), lane, (int)args.head_dim,
               result.first);
    load_strip(row_of(args.d_o, args.d_o_strides, batch, head, row), lane, (int)args.value_dim,
               result.second);
    return result;
  }
  __device__ static RowOperands of_key(const Args& args, int batch, int head, int key, int lane) {
    RowOperands result;
    load_strip(row_of(args.k, args.k_strides, batch, head, key), lane, (int)args.head_dim,
               result.first);
    load_strip(row_of(args.v, args.v_strides, batch, head, key), lane, (int)args.value_dim,
               result.second);
    return result;
  }
};

__device__ inline float warp_dot(const Strip& a, const Strip& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kStrips; ++i) sum += a[i] * b[i];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

// Sums of one row, by a warp: dQ, or dK and dV.
struct RowSums {
  Strip first, second;

  __device__ RowSums() {
#pragma unroll
    for (int i = 0; i < kStrips; ++i) first[i] = second[i] = 0;
  }
  // Adds the pair of `own` and `other`; `at`: number of the query row.
  __device__ void add(const Args& args, const RowOperands& own, const RowOperands& other, int64 at,
                      float exponent) {
    const float log_sum = ((const float*)args.log_sums)[at];
    if (log_sum == __int_as_float(0x7f800000)) return;
    const float weight =
        exp2_approx(fmaf(warp_dot(own.first, other.first), exponent, -log_sum));
    const float gradient =
        weight * (warp_dot(own.second, other.second) - ((const float*)args.deltas)[at]);
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
      first[i] += gradient * other.first[i];
      second[i] += weight * other.second[i];
    }
  }
};

// Elements of a stored row that are NaN: they are replaced. Columns from `begin` to `end`.
struct PoisonedRow {
  typename Element::Word* row;
  int lane, begin, end;
  bool is_nan[kStrips];

  template <class Pointer>
  __device__ PoisonedRow(Pointer data, const int64 (&strides)[3], int batch, int head, int number,
                         int lane, int begin, int end)
      : row((typename Element::Word*)row_of(data, strides, batch, head, number)),
        lane(lane),
        begin(begin),
        end(end) {
    Strip before;
    load_strip(row, lane, end, before);
#pragma unroll
    for (int i = 0; i < kStrips; ++i) is_nan[i] = 32 * i >= begin && before[i] != before[i];
  }
  // Whether some of the lane's elements may still be a number.
  __device__ bool is_open(const Strip& sums) const {
    bool result = false;
#pragma unroll
    for (int i = 0; i < kStrips; ++i) result = result || (is_nan[i] && sums[i] == sums[i]);
    return result;
  }
  __device__ void replace(const Strip& sums, float scale) const {
#pragma unroll
    for (int i = 0; i < kStrips; ++i)
      if (is_nan[i]) row[32 * i + lane] = narrow(Element(), sums[i] * scale);
  }
};

// Calls recompute(quad) for every quad of the warp of which a lane has a probe of NaN.
template <class Recompute>
__device__ inline void for_poisoned_rows(float probe, const Recompute& recompute) {
  const uint32 lanes = __ballot_sync(~0u, probe != probe);
  if (lanes == 0) return;
  __syncwarp();  // the stores of the rows
#pragma unroll 1
  for (int quad = 0; quad < 8; ++quad)
    if (lanes >> 4 * quad & 15) recompute(quad);
}
// NaN where an element of row r is NaN or infinity.
template <int kCount>
__device__ inline float probe_row(const float (&accum)[kCount], int r) {
  float probe = 0;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) probe = fmaf(accum[i / 2 * 4 + 2 * r + i % 2], 0, probe);
  return probe;
}
