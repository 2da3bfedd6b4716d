// Gradients of multi-head attention. With do'_i = keep_i do_i, the gradient before post dropout:
//   do_hi = Wo_h^T do'_i                       (its part of do'_i without a projection)
//   delta_i = sum_p do_hip o_hip, dp_ij = keep_ij sum_p do_hip v^_jp
//   ds_ij = p_ij (dp_ij - delta_i)
//   dq^_i = scale sum_j ds_ij k^_j, dk^_j = scale sum_i ds_ij q^_i
//   dv^_j = sum_i keep_ij p_ij do_hi
// Keys that serve several beams sum over all of them.

// Pass 2: one thread per element of do'.
__device__ inline void find_d_output(const Args& args, int64 n) {
  const HeadRow row = head_row(args.d_output, n / args.o_size);
  const Index at[4] = {row.b, row.beam, row.row, n % args.o_size};
  const bool exists = row.row < query_length(args, row.b, row.beam);
  head_vector(args, args.d_output, row)[at[3]] =
      exists ? post_kept(args, at, in_d_o(args, at)) : (R)0;
}
// Pass 3: one thread per element of do_h.
__device__ inline void find_d_heads(const Args& args, int64 n) {
  const int64 size = args.d_heads[4], p = n % size;
  const HeadRow query = head_row(args.d_heads, n / size);
  const R* d_output = head_vector(args, args.d_output, {query.b, query.beam, query.row, 0});
  const int64 column = query.head * size + p;
  head_vector(args, args.d_heads, query)[p] =
      args.o_projection[0] > 0 ? projected_back(args, args.o_projection, column, d_output)
                               : d_output[column];
}
// Pass 4: one CTA per row of ds_ij and of keep_ij p_ij.
__device__ inline void find_score_gradients(const Args& args, int64 n) {
  const HeadRow query = head_row(args.ds, n);
  const Columns visible = seen(args, query);
  const R* d_o = head_vector(args, args.d_heads, query);
  const R* o = head_vector(args, args.o_heads, query);
  const R* scores = head_vector(args, args.scores, query);
  const R stats = *head_vector(args, args.stats, query);
  const int64 size = args.d_heads[4];
  R delta = 0;
  for (int64 p = 0; p < size; ++p) delta += d_o[p] * o[p];
  for (int64 j = visible.begin + threadIdx.x; j < visible.end; j += kThreads) {
    const R* v = head_vector(args, args.v_heads, key_row(args, query, j));
    R dp = 0;
    for (int64 p = 0; p < size; ++p) dp += d_o[p] * v[p];
    const R weight = exp(scores[j] - stats);
    head_vector(args, args.ds, query)[j] = weight * (kept(args, query, j, dp) - delta);
    head_vector(args, args.p, query)[j] = kept(args, query, j, weight);
  }
}

// sum_i factor_ij x_ip over the query steps that attend to key j.
__device__ inline R sum_over_queries(const Args& args, const HeadRow& key, const HeadArray& factor,
                                     const HeadArray& x, int64 p) {
  R sum = 0;
  for (int64 beam = 0; beam < args.beams; ++beam)
    for (int64 i = 0; i < args.queries; ++i) {
      const HeadRow query = {key.b, beam, i, key.head};
      if (key_beam(args, beam) == key.beam && seen(args, query).contains(key.row))
        sum += head_vector(args, factor, query)[key.row] * head_vector(args, x, query)[p];
    }
  return sum;
}
// Pass 5: one thread per element of dq^, dk^ and dv^.
__device__ inline void find_head_gradients(const Args& args, int64 n) {
  const int64 q_size = array_rows(args, args.dq_heads) * args.dq_heads[4];
  const int64 k_size = array_rows(args, args.dk_heads) * args.dk_heads[4];
  if (n < q_size) {
    const HeadRow query = head_row(args.dq_heads, n / args.dq_heads[4]);
    const int64 p = n % args.dq_heads[4];
    const Columns visible = seen(args, query);
    R sum = 0;
    for (int64 j = visible.begin; j < visible.end; ++j)
      sum += head_vector(args, args.ds, query)[j] *
             head_vector(args, args.k_heads, key_row(args, query, j))[p];
    head_vector(args, args.dq_heads, query)[p] = (R)args.scale * sum;
  } else if (n < q_size + k_size) {
    const HeadRow key = head_row(args.dk_heads, (n - q_size) / args.dk_heads[4]);
    const int64 p = (n - q_size) % args.dk_heads[4];
    head_vector(args, args.dk_heads, key)[p] =
        (R)args.scale * sum_over_queries(args, key, args.ds, args.q_heads, p);
  } else {
    const HeadRow key = head_row(args.dv_heads, (n - q_size - k_size) / args.dv_heads[4]);
    const int64 p = (n - q_size - k_size) % args.dv_heads[4];
    head_vector(args, args.dv_heads, key)[p] =
        sum_over_queries(args, key, args.p, args.d_heads, p);
  }
}

__device__ inline void gradients_pass(const Args& args, int64 n) {
  switch (args.pass) {
    case 0: return project_all(args, n);
    case 1: return attend(args, n);
    case 2: return find_d_output(args, n);
    case 3: return find_d_heads(args, n);
    case 4: return find_score_gradients(args, n);
    case 5: return find_head_gradients(args, n);
  }
}
