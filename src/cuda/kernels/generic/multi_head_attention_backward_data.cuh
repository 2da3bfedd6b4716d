// Passes 6 to 8: one thread per element of dq, dk and dv: dq_i = sum_h Wq_h^T dq^_hi.
__device__ inline R unprojected(const Args& args, const HeadArray& array, const Projection& w,
                                const Index (&at)[4]) {
  const R* heads = head_vector(args, array, {at[0], at[1], at[2], 0});
  if (w[0] > 0) return projected_back(args, w, at[3], heads);
  R sum = 0;
  for (int64 head = 0; head < array[3]; ++head) sum += heads[head * array[4] + at[3]];
  return sum;
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass < 6) return gradients_pass(args, n);
  Index at[4];
  unflatten(n, args.pass == 6 ? args.q_dims : args.pass == 7 ? args.k_dims : args.v_dims, at);
  if (args.pass == 6)
    put_dq(args, at, unprojected(args, args.dq_heads, args.q_projection, at));
  else if (args.pass == 7)
    put_dk(args, at, unprojected(args, args.dk_heads, args.k_projection, at));
  else
    put_dv(args, at, unprojected(args, args.dv_heads, args.v_projection, at));
}
