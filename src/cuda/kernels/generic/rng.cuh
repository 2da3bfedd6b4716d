enum Distribution { kBernoulli, kUniform, kNormal };

// Box-Muller. Elements 2k and 2k + 1 share the uniform numbers u, v of their two lanes:
//   sqrt(-2 log u) cos(2 pi v)  and  sqrt(-2 log u) sin(2 pi v)
__device__ inline R standard_normal(uint64 seed, uint64 offset, uint64 i) {
  const R u = uniform_open(philox_element(seed, offset, i & ~1ull));
  const R v = uniform_open(philox_element(seed, offset, i | 1ull));
  const R radius = sqrt((R)-2 * log(u)), angle = (R)6.28318530717958647693 * v;
  return radius * ((i & 1) == 0 ? cos(angle) : sin(angle));
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y];
  unflatten(n, args.y_dims, at);
  const uint64 seed = seed_of(args), offset = offset_of(args), i = (uint64)n;
  if (kDistribution == kNormal)
    return put_y(args, at, (R)args.mean + (R)args.deviation * standard_normal(seed, offset, i));
  const float u = uniform_open(philox_element(seed, offset, i));
  if (kDistribution == kBernoulli)
    return put_y(args, at, u < (float)args.probability ? (R)1 : (R)0);
  put_y(args, at, (R)args.minimum + ((R)args.maximum - (R)args.minimum) * (R)u);
}
