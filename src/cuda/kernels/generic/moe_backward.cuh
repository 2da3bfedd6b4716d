// Mixture of experts, backward: dweight[e] = sum over the rows r of expert e of token[r]^T
// doutput[r]; dtoken[r] = doutput[r] weight^T.
__device__ inline R weight_gradient(const Args& args, const Index (&at)[3]) {
  R sum = 0;
  Index begin = first_begin(args);
  for (Index g = 0; g < args.first_token_offset_dims[0]; ++g) {
    const Index end = end_of(args, g, begin);
    for (Index r = begin; g % args.experts == at[0] && r < end; ++r) {
      const Index from = source(args, r), to = destination(args, r, args.doutput_dims[1]);
      if (from >= 0 && to >= 0)
        sum += in_token(args, {0, from, at[1]}) * in_doutput(args, {0, to, at[2]});
    }
    begin = end;
  }
  return sum;
}
__device__ inline R token_gradient(const Args& args, const Index (&at)[3]) {
  R sum = 0;
  const Index first = kGather ? 0 : at[1], last = kGather ? rows(args) : at[1] + 1;
  for (Index r = first; r < last; ++r) {
    if (source(args, r) != at[1]) continue;
    const Index to = destination(args, r, args.doutput_dims[1]), expert = expert_of(args, r);
    if (to < 0 || expert < 0) continue;
    for (Index c = 0; c < args.doutput_dims[2]; ++c)
      sum += in_doutput(args, {0, to, c}) * in_weight(args, {expert, at[2], c});
  }
  return sum;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[3];
  unflatten(n, args.pass == 0 ? args.dweight_dims : args.dtoken_dims, at);
  if (args.pass == 0)
    put_dweight(args, at, weight_gradient(args, at));
  else
    put_dtoken(args, at, token_gradient(args, at));
}
