// Mixture of experts, forward: output[destination(r)] += token[source(r)] weight[expert of r].
__device__ inline void unit(const Args& args, int64 n) {
  Index at[3];
  unflatten(n, args.output_dims, at);
  // Without scatter row m goes to row m.
  const Index first = kScatter ? 0 : at[1], last = kScatter ? rows(args) : at[1] + 1;
  R sum = 0;
  for (Index r = first; r < last; ++r) {
    if (destination(args, r, args.output_dims[1]) != at[1]) continue;
    const Index from = source(args, r), expert = expert_of(args, r);
    if (from < 0 || expert < 0) continue;
    for (Index k = 0; k < args.token_dims[2]; ++k)
      sum += in_token(args, {0, from, k}) * in_weight(args, {expert, k, at[2]});
  }
  put_output(args, at, sum);
}
