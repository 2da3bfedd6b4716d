// Random tensors.
enum Distribution { kBernoulli, kUniform, kNormal };

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y];
  unflatten(n, args.y_dims, at);
  const SeedStream stream = stream_of(args);
  if (kDistribution == kNormal)
    return put_y(args, at, (R)args.mean + (R)args.deviation * standard_normal<R>(stream, n));
  const float u = stream.uniform(n);
  if (kDistribution == kBernoulli)
    return put_y(args, at, u < (float)args.probability ? (R)1 : (R)0);
  put_y(args, at, (R)args.minimum + ((R)args.maximum - (R)args.minimum) * (R)u);
}
