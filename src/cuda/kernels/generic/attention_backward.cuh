// Attention backward, from o, stats and the gradient do of o:
//   dp_ij = keep_ij sum_d do_id v_jd, delta_i = sum_d do_id o_id
//   dm_ij = p_ij (dp_ij - delta_i)          of the score after modifier, bias and ALiBi
//   ds_ij = dm_ij * modifier' * cap'        of scale * q k^T
//   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i keep_ij p_ij do_i
//   dbias_ij = dm_ij,  dsink_h = -sum_i exp(sink_h - stats_i) delta_i
// One CTA per row of a gradient. Passes: delta, dq, dk, dv, dbias, dsink, amax.
FP8_SCALE(descale_o)
FP8_SCALE(descale_do)
FP8_SCALE(descale_dp)
FP8_SCALE(scale_dp)
FP8_SCALE(scale_dq)
FP8_SCALE(scale_dk)
FP8_SCALE(scale_dv)

__device__ __noinline__ void row_position(const Args& args, int64 row, int64& b, int64& h,
                                          int64& i) {
  i = row % args.queries;
  h = row / args.queries % args.heads;
  b = row / args.queries / args.heads;
}
__device__ inline int64 row_number(const Args& args, const ScoreCoord& at) {
  return (at.b * args.heads + at.h) * args.queries + at.i;
}
// Fully masked rows have no gradient.
__device__ __noinline__ bool sees_nothing(const Args& args, int64 b, int64 h, int64 i) {
  return in_stats(args, {b, h, i, 0}) == -(R)infinity() || i >= query_length(args, b);
}
__device__ inline R delta(const Args& args, const ScoreCoord& at) {
  return ((const R*)args.delta)[row_number(args, at)];
}
__device__ __noinline__ R weight(const Args& args, const ScoreCoord& at) {
  return exp(score(args, at) - in_stats(args, {at.b, at.h, at.i, 0}));
}
// Gradient of the score at the softmax input.
__device__ __noinline__ R dm(const Args& args, const ScoreCoord& at) {
  R dp = 0;
  for (int64 d = 0; d < args.v_dims[3]; ++d)
    dp += in_d_o(args, {at.b, at.h, at.i, d}) * v_element(args, at, d);
  dp = dp * factor_descale_do(args) * factor_descale_v(args);
  return weight(args, at) * (kept(args, at, dp) - delta(args, at));
}
// Gradient of scale * q k^T.
__device__ __noinline__ R ds(const Args& args, const ScoreCoord& at) {
  R gradient = dm(args, at);
  if constexpr (kHasModifier || kHasSoftCap) {
    const R scaled = scaled_score(args, at);
    if constexpr (kHasModifier)
      gradient = run_program(args, at, capped(args, scaled), gradient,
                             [](const R (&values)[10]) { return modifier_gradient(values); });
    if constexpr (kHasSoftCap) {
      const R t = tanh(scaled / (R)args.soft_cap);
      gradient *= (R)1 - t * t;
    }
  }
  return gradient;
}
// p and ds as operands of the last GEMMs. In fp8 the softmax scale is applied before rounding.
__device__ __noinline__ R p_operand(const Args& args, const ScoreCoord& at) {
  return as_operand(Factor(), kept(args, at, weight(args, at)) * factor_scale_s(args));
}
__device__ __noinline__ R ds_operand(const Args& args, const ScoreCoord& at) {
  const R gradient = kScalesFirst ? scale_of(args) * ds(args, at) : ds(args, at);
  return as_operand(GradientOperand(), gradient * factor_scale_dp(args));
}
__device__ inline R scale_later(const Args& args, R total) {
  return kScalesFirst ? total : scale_of(args) * total;
}

// Stores the maximum of a CTA for the last pass.
__device__ inline void keep_largest(void* to, int64 n, R largest) {
  largest = block_maximum(largest);
  if (threadIdx.x == 0) ((R*)to)[n] = largest;
}

__device__ inline void find_delta(const Args& args, int64 row) {
  int64 b, h, i;
  row_position(args, row, b, h, i);
  R sum = 0;
  for (int64 d = threadIdx.x; d < args.v_dims[3]; d += kThreads)
    sum += in_d_o(args, {b, h, i, d}) * in_o(args, {b, h, i, d});
  sum = block_sum(sum) * factor_descale_do(args) * factor_descale_o(args);
  if (threadIdx.x == 0) ((R*)args.delta)[row] = sum;
  dump_row(args, b, h, i);
}

__device__ inline void query_gradient(const Args& args, int64 row) {
  int64 b, h, i;
  row_position(args, row, b, h, i);
  const Columns visible = columns(args, b, i);
  const int64 count = sees_nothing(args, b, h, i) ? 0 : visible.end - visible.begin;
  R largest = 0;
  multiply_row(
      count, args.k_dims[3],
      [&](int64 n) { return !is_hidden(args, {b, h, i, visible.begin + n}); },
      [&](int64 n) { return ds_operand(args, {b, h, i, visible.begin + n}); },
      [&](int64 n, int64 d) { return k_element(args, {b, h, i, visible.begin + n}, d); },
      [&](int64 d, R total) {
        const R value = scale_later(args, total) * factor_descale_dp(args) * factor_descale_k(args);
        largest = Max::apply(largest, fabs(value));
        put_dq(args, {b, h, i, d}, value * factor_scale_dq(args));
      });
  if constexpr (kHas_amax_dq) keep_largest(args.largest_dq, row, largest);
  if constexpr (kHas_amax_dp) {
    R largest_dp = 0;
    for (int64 n = threadIdx.x; n < count; n += kThreads) {
      const ScoreCoord at = {b, h, i, visible.begin + n};
      if (!is_hidden(args, at))
        largest_dp = Max::apply(largest_dp, fabs(scale_of(args) * ds(args, at)));
    }
    keep_largest(args.largest_dp, row, largest_dp);
  }
}

// A row of dk or dv sums over the keys it holds, the query heads it serves and the query rows that
// attend to them. Keys are (b, j): one, or with paging every (b, j) whose page this is. Returns
// summand n, query rows varying fastest; `row` indexes the rows of a tensor with these extents.
template <bool kPaged>
__device__ __noinline__ ScoreCoord summand(const Args& args, const int64* extents, int64 row,
                                           int64 n) {
  const int64 position = row % extents[2], group = args.heads / extents[1];
  const int64 i = n % args.queries, key = n / args.queries / group;
  const int64 h = row / extents[2] % extents[1] * group + n / args.queries % group;
  if (!kPaged) return {row / extents[2] / extents[1], h, i, position};
  const int64 pages = (args.keys + extents[2] - 1) / extents[2];
  return {key / pages, h, i, key % pages * extents[2] + position};
}
// Accumulates factor(place) * source(place, d).
template <bool kPaged, class Page, class Weight, class Source, class Store>
__device__ inline void key_gradient(const Args& args, const int64* extents, int64 row, Page page,
                                    Weight factor, Source source, Store store) {
  const int64 position = row % extents[2], group_head = row / extents[2] % extents[1];
  const int64 block = row / extents[2] / extents[1];
  const int64 group = args.heads / extents[1];
  const int64 pages = (args.keys + extents[2] - 1) / extents[2];
  const auto place = [&](int64 n) { return summand<kPaged>(args, extents, row, n); };
  multiply_row(
      (kPaged ? args.batch * pages : 1) * group * args.queries, extents[3],
      [&](int64 n) {
        const ScoreCoord at = place(n);
        if (kPaged && (at.j >= args.keys || page(at.b, at.j) != block)) return false;
        return is_seen(args, at) && !sees_nothing(args, at.b, at.h, at.i);
      },
      [&](int64 n) { return factor(place(n)); },
      [&](int64 n, int64 d) { return source(place(n), d); },
      [&](int64 d, R total) { store(block, group_head, position, d, total); });
}

__device__ inline void k_gradient(const Args& args, int64 row) {
  R largest = 0;
  key_gradient<kHas_page_table_k>(
      args, args.k_dims, row, [&](int64 b, int64 j) { return k_page(args, b, j); },
      [&](const ScoreCoord& at) { return ds_operand(args, at); },
      [&](const ScoreCoord& at, int64 d) { return in_q(args, {at.b, at.h, at.i, d}); },
      [&](int64 block, int64 h, int64 j, int64 d, R total) {
        const R value = scale_later(args, total) * factor_descale_dp(args) * factor_descale_q(args);
        largest = Max::apply(largest, fabs(value));
        put_dk(args, {block, h, j, d}, value * factor_scale_dk(args));
      });
  if constexpr (kHas_amax_dk) keep_largest(args.largest_dk, row, largest);
}
__device__ inline void v_gradient(const Args& args, int64 row) {
  R largest = 0;
  key_gradient<kHas_page_table_v>(
      args, args.v_dims, row, [&](int64 b, int64 j) { return v_page(args, b, j); },
      [&](const ScoreCoord& at) { return p_operand(args, at); },
      [&](const ScoreCoord& at, int64 d) { return in_d_o(args, {at.b, at.h, at.i, d}); },
      [&](int64 block, int64 h, int64 j, int64 d, R total) {
        const R value = total * factor_descale_s(args) * factor_descale_do(args);
        largest = Max::apply(largest, fabs(value));
        put_dv(args, {block, h, j, d}, value * factor_scale_dv(args));
      });
  if constexpr (kHas_amax_dv) keep_largest(args.largest_dv, row, largest);
}

// An element of dbias is summed over the scores that it broadcasts to.
__device__ inline void bias_gradient(const Args& args, int64 n) {
  if constexpr (kHas_dbias) {
    Index index[4];
    unflatten(n, args.bias_dims, index);
    R sum = 0;
    for (int64 element = threadIdx.x; element < args.bias_reach_size; element += kThreads) {
      Index at[4];
      unflatten(element, args.bias_reach, at);
      for (int axis = 0; axis < 4; ++axis) at[axis] += index[axis];
      const ScoreCoord place = {at[0], at[1], at[2], at[3]};
      if (is_seen(args, place) && !sees_nothing(args, place.b, place.h, place.i))
        sum += dm(args, place);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) put_dbias(args, index, sum);
  }
}

__device__ inline void sink_gradient(const Args& args, int64 h) {
  if constexpr (kHas_dsink) {
    R sum = 0;
    for (int64 n = threadIdx.x; n < args.batch * args.queries; n += kThreads) {
      const ScoreCoord at = {n / args.queries, h, n % args.queries, 0};
      if (!sees_nothing(args, at.b, h, at.i))
        sum -= exp(in_sink(args, {0, h, 0, 0}) - in_stats(args, {at.b, h, at.i, 0})) *
               delta(args, at);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) put_dsink(args, {0, h, 0, 0}, sum);
  }
}

__device__ inline void reduce_largest(const Args& args) {
  const int64 k_rows = args.k_dims[0] * args.k_dims[1] * args.k_dims[2];
  const int64 v_rows = args.v_dims[0] * args.v_dims[1] * args.v_dims[2];
  const auto find = [&](const void* numbers, int64 count, auto put) {
    const R largest = largest_of((const R*)numbers, count);
    if (threadIdx.x == 0) put(largest);
  };
  if constexpr (kHas_amax_dq)
    find(args.largest_dq, args.rows, [&](R x) { put_amax_dq(args, {0, 0, 0, 0}, x); });
  if constexpr (kHas_amax_dk)
    find(args.largest_dk, k_rows, [&](R x) { put_amax_dk(args, {0, 0, 0, 0}, x); });
  if constexpr (kHas_amax_dv)
    find(args.largest_dv, v_rows, [&](R x) { put_amax_dv(args, {0, 0, 0, 0}, x); });
  if constexpr (kHas_amax_dp)
    find(args.largest_dp, args.rows, [&](R x) { put_amax_dp(args, {0, 0, 0, 0}, x); });
}

__device__ inline void unit(const Args& args, int64 n) {
  switch (args.pass) {
    case 0: return find_delta(args, n);
    case 1: return query_gradient(args, n);
    case 2: return k_gradient(args, n);
    case 3: return v_gradient(args, n);
    case 4: return bias_gradient(args, n);
    case 5: return sink_gradient(args, n);
    case 6: return reduce_largest(args);
  }
}
