// Scaled dot-product attention, one CTA per query row:
//   p_j = exp(s_j - max) / sum, o = sum_j keep_j p_j v_j
// Pass 0 computes o, pass 1 reduces amax over all rows.
FP8_SCALE(scale_o)

struct RowSum {
  R largest, weights;  // weights: the sum of exp(score - largest)
  // No visible column, or all scores are -inf.
  __device__ bool sees_nothing() const { return largest == -(R)infinity(); }
};

__device__ inline RowSum row_sum(const Args& args, int64 b, int64 h, int64 i,
                                 const Columns& visible) {
  RowSum sum = {-(R)infinity(), 0};
  for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads)
    if (!is_hidden(args, {b, h, i, j}))
      sum.largest = Max::apply(sum.largest, score(args, {b, h, i, j}));
  sum.largest = block_maximum(sum.largest);
  const bool has_sink = kHas_sink && i < query_length(args, b);
  const R sink = has_sink ? in_sink(args, {0, h, 0, 0}) : (R)0;
  if (has_sink) sum.largest = Max::apply(sum.largest, sink);
  if (sum.sees_nothing()) return sum;
  for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads)
    if (!is_hidden(args, {b, h, i, j}))
      sum.weights += exp(score(args, {b, h, i, j}) - sum.largest);
  sum.weights = block_sum(sum.weights);
  if (has_sink) sum.weights += exp(sink - sum.largest);
  return sum;
}

__device__ inline void attend(const Args& args, int64 row) {
  const int64 i = row % args.queries, head = row / args.queries;
  const int64 h = head % args.heads, b = head / args.heads;
  const Columns visible = columns(args, b, i);
  const RowSum sum = row_sum(args, b, h, i, visible);
  const bool sees_nothing = sum.sees_nothing();
  const auto weight = [&](int64 j) {
    const ScoreCoord at = {b, h, i, j};
    return kept(args, at, exp(score(args, at) - sum.largest));
  };
  // fp8: weights are normalised before they are rounded; otherwise o is normalised at the end.
  const R before = kDividesFirst ? sum.weights : (R)1, after = kDividesFirst ? (R)1 : sum.weights;
  R largest_s = 0, largest_o = 0;
  multiply_row(
      sees_nothing ? 0 : visible.end - visible.begin, args.v_dims[3],
      [&](int64 n) { return !is_hidden(args, {b, h, i, visible.begin + n}); },
      [&](int64 n) {
        return as_operand(Factor(), weight(visible.begin + n) / before * factor_scale_s(args));
      },
      [&](int64 n, int64 d) { return v_element(args, {b, h, i, visible.begin + n}, d); },
      [&](int64 d, R total) {
        if (sees_nothing) return put_o(args, {b, h, i, d}, (R)0);
        const R product = total / after * factor_descale_s(args) * factor_descale_v(args);
        largest_o = Max::apply(largest_o, fabs(product));
        put_o(args, {b, h, i, d}, product * factor_scale_o(args));
      });
  if constexpr (kHas_amax_s) {
    if (!sees_nothing)
      for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads)
        if (!is_hidden(args, {b, h, i, j}))
          largest_s = Max::apply(largest_s, weight(j) / sum.weights);
    largest_s = block_maximum(largest_s);
    if (threadIdx.x == 0) ((R*)args.largest_s)[row] = largest_s;
  }
  if constexpr (kHas_amax_o) {
    largest_o = block_maximum(largest_o);
    if (threadIdx.x == 0) ((R*)args.largest_o)[row] = largest_o;
  }
  dump_row(args, b, h, i);
  if (threadIdx.x != 0) return;
  if constexpr (kHas_stats)
    put_stats(args, {b, h, i, 0},
              sees_nothing ? -(R)infinity() : sum.largest + log(sum.weights));
  if constexpr (kHas_max) put_max(args, {b, h, i, 0}, sum.largest);
  if constexpr (kHas_sum_exp) put_sum_exp(args, {b, h, i, 0}, sum.weights);
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0) return attend(args, n);
  if constexpr (kHas_amax_s) {
    const R largest = largest_of((const R*)args.largest_s, args.rows);
    if (threadIdx.x == 0) put_amax_s(args, {0, 0, 0, 0}, largest);
  }
  if constexpr (kHas_amax_o) {
    const R largest = largest_of((const R*)args.largest_o, args.rows);
    if (threadIdx.x == 0) put_amax_o(args, {0, 0, 0, 0}, largest);
  }
}
