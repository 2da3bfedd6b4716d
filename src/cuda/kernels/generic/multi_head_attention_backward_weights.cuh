// Passes 6 to 9: one thread per weight of the query, key, value and output projections.
//   dWq_h = sum_i dq^_hi q_i^T, dbq_h = sum_i dq^_hi; k and v alike
//   dWo = sum_i do'_i [o_1i, ..., o_Hi]^T, dbo = sum_i do'_i
// Steps past the lengths are skipped: their memory may be uninitialised.
template <class Right>
__device__ inline void weight_gradient(const Args& args, const HeadArray& left,
                                       const Projection& w, int64 n, bool of_keys, Right right) {
  const bool is_bias = n >= w[0] * w[1];
  const int64 row = is_bias ? n - w[0] * w[1] : n / w[1], column = is_bias ? 0 : n % w[1];
  R sum = 0;
  for (int64 b = 0; b < args.batch; ++b)
    for (int64 beam = 0; beam < left[1]; ++beam) {
      const int64 steps = of_keys ? key_length(args, b, beam) : query_length(args, b, beam);
      for (int64 i = 0; i < steps; ++i) {
        const HeadRow step = {b, beam, i, 0};
        const R gradient = head_vector(args, left, step)[row];
        sum += is_bias ? gradient : gradient * right(step, column);
      }
    }
  const int64 element = is_bias ? w[3] + row : w[2] + n;
  put_dweights(args, {element}, sum + in_previous(args, {element}));
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass < 6) return gradients_pass(args, n);
  if (args.pass == 6)
    weight_gradient(args, args.dq_heads, args.q_projection, n, false,
                    [&](const HeadRow& at, int64 c) {
                      return in_q(args, {at.b, at.beam, at.row, c});
                    });
  else if (args.pass == 7)
    weight_gradient(args, args.dk_heads, args.k_projection, n, true,
                    [&](const HeadRow& at, int64 c) {
                      return in_k(args, {at.b, at.beam, at.row, c});
                    });
  else if (args.pass == 8)
    weight_gradient(args, args.dv_heads, args.v_projection, n, true,
                    [&](const HeadRow& at, int64 c) {
                      return in_v(args, {at.b, at.beam, at.row, c});
                    });
  else
    weight_gradient(args, args.d_output, args.o_projection, n, false,
                    [&](const HeadRow& at, int64 c) {
                      return head_vector(args, args.o_heads, at)[c];
                    });
}
