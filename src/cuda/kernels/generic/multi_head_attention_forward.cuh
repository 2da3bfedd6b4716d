// Pass 2: one thread per element of o_i = keep_i (Wo [o_1i, ..., o_Hi] + bo) + residual_i.
__device__ inline void put_output(const Args& args, int64 n) {
  Index at[4];
  unflatten(n, args.o_dims, at);
  if (at[2] >= query_length(args, at[0], at[1])) return put_o(args, at, (R)0);
  const R* heads = head_vector(args, args.o_heads, {at[0], at[1], at[2], 0});
  const R result =
      args.o_projection[0] > 0
          ? projected(args, args.o_projection, at[3], [&](int64 column) { return heads[column]; })
          : heads[at[3]];
  put_o(args, at, post_kept(args, at, result) + in_residual(args, at));
}

__device__ inline void unit(const Args& args, int64 n) {
  switch (args.pass) {
    case 0: return project_all(args, n);
    case 1: return attend(args, n);
    case 2: return put_output(args, n);
  }
}
