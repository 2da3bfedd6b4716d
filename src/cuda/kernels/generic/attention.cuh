// Attention, shared by forward and backward: scores, masks, paged K and V, dropout.
#include "lib/philox.cuh"
#include "lib/coordinates.cuh"
#include "lib/reduce.cuh"

__device__ __noinline__ R block_sum(R value) { return block_reduce<kThreads / kLanes, Sum>(value); }
__device__ __noinline__ R block_maximum(R value) {
  return block_reduce<kThreads / kLanes, Max>(value);
}

// Coordinates of one score: batch, query head, query position, key position.
struct ScoreCoord {
  int64 b, h, i, j;
};
// Visible columns of a row by sequence lengths and diagonal bounds.
struct Columns {
  int64 begin, end;
  __device__ bool contains(int64 j) const { return j >= begin && j < end; }
};

// __noinline__ keeps compile times down.

// --- masks

__device__ inline int64 within(int64 length, int64 extent) {
  return length < 0 ? 0 : length > extent ? extent : length;
}
__device__ inline int64 query_length(const Args& args, int64 b) {
  if constexpr (kHas_seq_len_q)
    return within(integer_seq_len_q(args, {b, 0, 0, 0}), args.queries);
  return args.queries;
}
__device__ inline int64 key_length(const Args& args, int64 b) {
  if constexpr (kHas_seq_len_kv)
    return within(integer_seq_len_kv(args, {b, 0, 0, 0}), args.keys);
  return args.keys;
}
// Row i attends to i + shift - left_bound < j <= i + shift + right_bound, within the lengths.
__device__ __noinline__ Columns columns(const Args& args, int64 b, int64 i) {
  const int64 rows = query_length(args, b), all = key_length(args, b);
  if (i >= rows) return {0, 0};
  const int64 diagonal = kBottomRight ? i + all - rows : i;
  Columns visible = {0, all};
  // Bounds past the extents mask nothing; comparing first avoids integer overflow.
  if (kHasLeftBound && args.left_bound <= diagonal) visible.begin = diagonal - args.left_bound + 1;
  if (kHasRightBound && args.right_bound < all - diagonal)
    visible.end = diagonal + args.right_bound + 1;
  return visible;
}

// Page of key j of batch b; may be out of range.
__device__ inline int64 k_page(const Args& args, int64 b, int64 j) {
  return integer_page_table_k(args, {b, 0, j / args.k_dims[2], 0});
}
__device__ inline int64 v_page(const Args& args, int64 b, int64 j) {
  return integer_page_table_v(args, {b, 0, j / args.v_dims[2], 0});
}
// Whether a score inside columns() is masked by the block mask or has no valid page.
__device__ __noinline__ bool is_hidden(const Args& args, const ScoreCoord& at) {
  if constexpr (kHas_block_mask) {
    if (in_block_mask(args, {at.b, at.h, at.i / args.block_rows, at.j / args.block_columns}) == 0)
      return true;
  }
  if constexpr (kHas_page_table_k) {
    const int64 page = k_page(args, at.b, at.j);
    if (page < 0 || page >= args.k_dims[0]) return true;
  }
  if constexpr (kHas_page_table_v) {
    const int64 page = v_page(args, at.b, at.j);
    if (page < 0 || page >= args.v_dims[0]) return true;
  }
  return false;
}
__device__ __noinline__ bool is_seen(const Args& args, const ScoreCoord& at) {
  return columns(args, at.b, at.i).contains(at.j) && !is_hidden(args, at);
}

// --- elements of k and v in row j, of the KV head that serves query head h

__device__ __noinline__ R k_element(const Args& args, const ScoreCoord& at, int64 d) {
  const int64 head = at.h / (args.heads / args.k_dims[1]);
  if constexpr (kHas_page_table_k)
    return in_k(args, {k_page(args, at.b, at.j), head, at.j % args.k_dims[2], d});
  return in_k(args, {at.b, head, at.j, d});
}
__device__ __noinline__ R v_element(const Args& args, const ScoreCoord& at, int64 d) {
  const int64 head = at.h / (args.heads / args.v_dims[1]);
  if constexpr (kHas_page_table_v)
    return in_v(args, {v_page(args, at.b, at.j), head, at.j % args.v_dims[2], d});
  return in_v(args, {at.b, head, at.j, d});
}

// --- fp8 scales and descales: tensors of one element, 1 where absent

#define FP8_SCALE(name)                                                 \
  __device__ inline R factor_##name(const Args& args) {                  \
    return kHas_##name ? in_##name(args, Origin<kRank_##name>().at) : 1; \
  }
FP8_SCALE(descale_q)
FP8_SCALE(descale_k)
FP8_SCALE(descale_v)
FP8_SCALE(descale_s)
FP8_SCALE(scale_s)

// --- scores

__device__ inline R scale_of(const Args& args) {
  if constexpr (kHas_scale_tensor) return in_scale_tensor(args, Origin<kRank_scale_tensor>().at);
  return (R)args.scale;
}
__device__ __noinline__ R scaled_score(const Args& args, const ScoreCoord& at) {
  R sum = 0;
  for (int64 d = 0; d < args.k_dims[3]; ++d)
    sum += in_q(args, {at.b, at.h, at.i, d}) * k_element(args, at, d);
  return scale_of(args) * factor_descale_q(args) * factor_descale_k(args) * sum;
}
// The input of the score modifier.
__device__ inline R capped(const Args& args, R scaled) {
  if constexpr (!kHasSoftCap) return scaled;
  return (R)args.soft_cap * tanh(scaled / (R)args.soft_cap);
}
// Calls `program`, a score program that the head defines, on the score and its coordinates.
template <class Program>
__device__ inline R run_program(const Args& args, const ScoreCoord& at, R score, R gradient,
                                Program program) {
  const R values[10] = {score,
                        (R)at.i,
                        (R)at.j,
                        (R)at.b,
                        (R)at.h,
                        in_score_input0(args, {at.b, at.h, at.i, at.j}),
                        in_score_input1(args, {at.b, at.h, at.i, at.j}),
                        in_score_input2(args, {at.b, at.h, at.i, at.j}),
                        in_score_input3(args, {at.b, at.h, at.i, at.j}),
                        gradient};
  return program(values);
}
// ALiBi slope of a query head; alibi_power is the largest power of two <= number of heads.
__device__ inline R alibi_slope(const Args& args, int64 h) {
  const int64 power = args.alibi_power;
  return h < power ? exp2((R)-8 * (R)(h + 1) / (R)power)
                   : exp2((R)-4 * (R)(2 * (h - power) + 1) / (R)power);
}
__device__ __noinline__ R score(const Args& args, const ScoreCoord& at) {
  R score = capped(args, scaled_score(args, at));
  if constexpr (kHasModifier)
    score = run_program(args, at, score, (R)0,
                        [](const R (&values)[10]) { return modified_score(values); });
  if constexpr (kHas_bias) score += in_bias(args, {at.b, at.h, at.i, at.j});
  if constexpr (kAlibi) score += alibi_slope(args, at.h) * (R)(at.j - at.i);
  return score;
}

// --- dropout

__device__ __noinline__ bool keeps(const Args& args, const ScoreCoord& at) {
  if constexpr (kHas_dropout_mask) {
    return in_dropout_mask(args, {at.b, at.h, at.i, at.j}) != 0;
  } else {
    const int64 position =
        ((at.b * args.heads + at.h) * args.queries + at.i) * args.keys + at.j;
    return bernoulli((uint64)integer_dropout_seed(args, Origin<kRank_dropout_seed>().at),
                     (uint64)integer_dropout_offset(args, Origin<kRank_dropout_offset>().at),
                     (uint64)position, (float)args.keep_probability);
  }
}
// 0, or x / (1 - probability).
__device__ inline R kept(const Args& args, const ScoreCoord& at, R x) {
  if constexpr (!kDropout) return x;
  return keeps(args, at) ? x * (R)(1.0 / args.keep_probability) : (R)0;
}
// Stores row (b, h, i) of the dropout mask.
__device__ inline void dump_row(const Args& args, int64 b, int64 h, int64 i) {
  if constexpr (kHas_rng_dump) {
    for (int64 j = threadIdx.x; j < args.keys; j += kThreads)
      put_rng_dump(args, {b, h, i, j}, keeps(args, {b, h, i, j}) ? (R)1 : (R)0);
  }
}

// --- vector-matrix products

// Rounds a GEMM operand to its fp8 type with saturation; other types pass unchanged.
template <class D>
__device__ inline R as_fp8(D d, R x, R largest) {
  return round_through(d, x > largest ? largest : x < -largest ? -largest : x);
}
__device__ inline R as_operand(f32, R x) { return x; }
__device__ inline R as_operand(e4m3 d, R x) { return as_fp8(d, x, (R)448); }
__device__ inline R as_operand(e5m2 d, R x) { return as_fp8(d, x, (R)57344); }

// Calls store(d, sum of factor(n) * element(n, d) over the n < count that `exists` accepts) for
// every d < width. Called by all threads of a CTA: they compute kThreads factors at a time into
// shared memory, then each thread accumulates its own d.
template <class Exists, class Weight, class Element, class Store>
__device__ inline void multiply_row(int64 count, int64 width, Exists exists, Weight factor,
                                    Element element, Store store) {
  __shared__ R factors[kThreads];
  __shared__ int present[kThreads];
  for (int64 first_d = 0; first_d < width; first_d += kThreads) {
    const int64 d = first_d + threadIdx.x;
    R sum = 0;
    for (int64 first = 0; first < count; first += kThreads) {
      const int64 n = first + threadIdx.x;
      const bool here = n < count && exists(n);
      present[threadIdx.x] = here ? 1 : 0;
      factors[threadIdx.x] = here ? factor(n) : (R)0;
      __syncthreads();
      const int64 rest = count - first;
      if (d < width)
        for (int m = 0; m < kThreads && m < rest; ++m)
          if (present[m] != 0) sum += factors[m] * element(first + m, d);
      __syncthreads();
    }
    if (d < width) store(d, sum);
  }
}

// Maximum of the per-CTA values that an earlier pass stored, at least 0.
__device__ inline R largest_of(const R* numbers, int64 count) {
  R largest = 0;
  for (int64 n = threadIdx.x; n < count; n += kThreads)
    largest = Max::apply(largest, numbers[n]);
  return block_maximum(largest);
}
