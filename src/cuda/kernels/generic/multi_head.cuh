// Multi-head attention, shared by forward and backward. Per batch b, beam m and head h:
//   q^_i = Wq q_i + bq, k^_j = Wk k_j + bk, v^_j = Wv v_j + bv      (x itself without a projection)
//   s_ij = scale * sum_p q^_ip k^_jp                                for the visible keys j of i
//   p_ij = exp(s_ij - stats_i), stats_i = log(sum_j exp(s_ij))
//   o_hi = sum_j keep_ij p_ij v^_j                                  keep_ij: 0 or 1 / (1 - dropout)
// Intermediates between passes are arrays [batch, beams, rows, heads, size] in args.memory.
#include "lib/coordinates.cuh"
#include "lib/philox.cuh"
#include "lib/reduce.cuh"

__device__ __noinline__ R block_sum(R value) { return block_reduce<kThreads / kLanes, Sum>(value); }
__device__ __noinline__ R block_maximum(R value) {
  return block_reduce<kThreads / kLanes, Max>(value);
}

// A query step (row of q, o) or a key step (row of k, v), and a head.
struct HeadRow {
  int64 b, beam, row, head;
};
// An intermediate array: first element, beams, rows, heads, size.
typedef int64 HeadArray[5];

__device__ __noinline__ R* head_vector(const Args& args, const HeadArray& array,
                                       const HeadRow& at) {
  return (R*)args.memory + array[0] +
         (((at.b * array[1] + at.beam) * array[2] + at.row) * array[3] + at.head) * array[4];
}
__device__ inline int64 array_rows(const Args& args, const HeadArray& array) {
  return args.batch * array[1] * array[2] * array[3];
}
__device__ __noinline__ HeadRow head_row(const HeadArray& array, int64 n) {
  const int64 head = n % array[3], rest = n / array[3];
  return {rest / array[2] / array[1], rest / array[2] % array[1], rest % array[2], head};
}

// --- projections x -> W x + b: rows, columns, first elements of W and b. Zero rows: identity.
typedef int64 Projection[4];

__device__ __noinline__ R matrix_element(const Args& args, const Projection& w, int64 row,
                                         int64 column) {
  return in_weights(args, {w[2] + row * w[1] + column});
}
// Element `row` of W x + b, element `column` of W^T x.
template <class Vector>
__device__ inline R projected(const Args& args, const Projection& w, int64 row, Vector x) {
  R sum = 0;
  for (int64 c = 0; c < w[1]; ++c) sum += matrix_element(args, w, row, c) * x(c);
  return kHasBiases ? sum + in_weights(args, {w[3] + row}) : sum;
}
__device__ __noinline__ R projected_back(const Args& args, const Projection& w, int64 column,
                                   const R* x) {
  R sum = 0;
  for (int64 r = 0; r < w[0]; ++r) sum += matrix_element(args, w, r, column) * x[r];
  return sum;
}
template <class Load>
__device__ inline void project(const Args& args, const HeadArray& to, const Projection& w, int64 n,
                               Load load) {
  const HeadRow at = head_row(to, n / to[4]);
  const int64 p = n % to[4];
  const auto element = [&](int64 c) { return load(at, c); };
  head_vector(args, to, at)[p] =
      w[0] > 0 ? projected(args, w, at.head * to[4] + p, element) : element(p);
}
// Pass 0: one thread per element of q^, k^ and v^.
__device__ inline void project_all(const Args& args, int64 n) {
  const int64 q_size = array_rows(args, args.q_heads) * args.q_heads[4];
  const int64 k_size = array_rows(args, args.k_heads) * args.k_heads[4];
  if (n < q_size)
    project(args, args.q_heads, args.q_projection, n, [&](const HeadRow& at, int64 c) {
      return in_q(args, {at.b, at.beam, at.row, c});
    });
  else if (n < q_size + k_size)
    project(args, args.k_heads, args.k_projection, n - q_size, [&](const HeadRow& at, int64 c) {
      return in_k(args, {at.b, at.beam, at.row, c});
    });
  else
    project(args, args.v_heads, args.v_projection, n - q_size - k_size,
            [&](const HeadRow& at, int64 c) { return in_v(args, {at.b, at.beam, at.row, c}); });
}

// --- visible keys of a query step

__device__ inline int64 within(int64 bound, int64 extent) {
  return bound < 0 ? 0 : bound > extent ? extent : bound;
}
__device__ inline int64 query_length(const Args& args, int64 b, int64 beam) {
  if constexpr (kHas_seq_len_q)
    return within(integer_seq_len_q(args, {b, beam, 0, 0}), args.queries);
  return args.queries;
}
__device__ inline int64 key_length(const Args& args, int64 b, int64 key_beam) {
  if constexpr (kHas_seq_len_kv)
    return within(integer_seq_len_kv(args, {b, key_beam, 0, 0}), args.keys);
  return args.keys;
}
__device__ inline int64 key_beam(const Args& args, int64 beam) {
  return args.key_beams == 1 ? 0 : beam;
}
struct Columns {
  int64 begin, end;
  __device__ bool contains(int64 j) const { return j >= begin && j < end; }
};
// Keys within the lengths and the attention window.
__device__ __noinline__ Columns columns(const Args& args, const HeadRow& query) {
  if (query.row >= query_length(args, query.b, query.beam)) return {0, 0};
  const int64 all = key_length(args, query.b, key_beam(args, query.beam));
  Columns result = {0, all};
  if constexpr (kHas_window_low)
    result.begin = within(integer_window_low(args, {0, 0, query.row, 0}), all);
  if constexpr (kHas_window_high)
    result.end = within(integer_window_high(args, {0, 0, query.row, 0}), all);
  return result;
}
// Keys with a non-zero weight: none where all scores are -inf. Valid after pass 1.
__device__ inline Columns seen(const Args& args, const HeadRow& query) {
  if (*head_vector(args, args.stats, query) == -(R)infinity()) return {0, 0};
  return columns(args, query);
}
__device__ inline HeadRow key_row(const Args& args, const HeadRow& query, int64 j) {
  return {query.b, key_beam(args, query.beam), j, query.head};
}

// --- dropout of a weight, and of an element of o

__device__ __noinline__ R after_dropout(uint64 seed, uint64 offset, double keep, int64 position,
                                        R x) {
  return bernoulli(seed, offset, (uint64)position, (float)keep) ? x * (R)(1.0 / keep) : (R)0;
}
__device__ __noinline__ R kept(const Args& args, const HeadRow& query, int64 j, R x) {
  if (!kDropout) return x;
  // Beams that share their keys are contiguous in the random stream.
  const int64 head = args.key_beams == 1
                         ? (query.b * args.heads + query.head) * args.beams + query.beam
                         : (query.b * args.beams + query.beam) * args.heads + query.head;
  return after_dropout((uint64)integer_dropout_seed(args, Origin<kRank_dropout_seed>().at),
                       (uint64)integer_dropout_offset(args, Origin<kRank_dropout_offset>().at),
                       args.keep_probability,
                       (head * args.queries + query.row) * args.keys + j, x);
}
__device__ __noinline__ R post_kept(const Args& args, const Index (&at)[4], R x) {
  if (!kPostDropout) return x;
  const int64 position =
      ((at[0] * args.beams + at[1]) * args.queries + at[2]) * args.o_size + at[3];
  return after_dropout(
      (uint64)integer_post_dropout_seed(args, Origin<kRank_post_dropout_seed>().at),
      (uint64)integer_post_dropout_offset(args, Origin<kRank_post_dropout_offset>().at),
      args.post_keep_probability, position, x);
}

// Pass 1: one CTA per query step and head, from scores to o_hi.
__device__ inline void attend(const Args& args, int64 n) {
  const HeadRow query = head_row(args.o_heads, n);
  const Columns visible = columns(args, query);
  R* scores = head_vector(args, args.scores, query);
  const R* q = head_vector(args, args.q_heads, query);
  R largest = -(R)infinity(), sum = 0;
  for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads) {
    const R* k = head_vector(args, args.k_heads, key_row(args, query, j));
    R product = 0;
    for (int64 p = 0; p < args.q_heads[4]; ++p) product += q[p] * k[p];
    scores[j] = (R)args.scale * product;
    largest = Max::apply(largest, scores[j]);
  }
  largest = block_maximum(largest);
  const bool sees_nothing = largest == -(R)infinity();
  if (!sees_nothing)
    for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads)
      sum += exp(scores[j] - largest);
  sum = block_sum(sum);  // its barriers also make the scores visible to all threads
  for (int64 p = threadIdx.x; p < args.o_heads[4]; p += kThreads) {
    R o = 0;
    if (!sees_nothing)
      for (int64 j = visible.begin; j < visible.end; ++j)
        o += kept(args, query, j, exp(scores[j] - largest)) *
             head_vector(args, args.v_heads, key_row(args, query, j))[p];
    head_vector(args, args.o_heads, query)[p] = sees_nothing ? (R)0 : o / sum;
  }
  if (threadIdx.x == 0)
    *head_vector(args, args.stats, query) = sees_nothing ? -(R)infinity() : largest + log(sum);
}
