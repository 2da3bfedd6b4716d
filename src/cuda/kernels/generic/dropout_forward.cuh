// Dropout: y = x / (1 - probability) where a Bernoulli stream of 1 - probability gives 1, else 0.
// Pass 1 stores the offset at which the next draw starts.
__device__ inline void unit(const Args& args, int64 n) {
  const SeedStream stream = stream_of(args);
  if (args.pass == 1) {
    const uint64 elements = (uint64)args.begin;
    return put_next_offset(args, Origin<kRank_next_offset>().at,
                           (double)(int64)(stream.offset + (elements + 3) / 4));
  }
  Index at[kRank_x];
  unflatten(n, args.x_dims, at);
  const bool kept = stream.uniform(n) < (float)args.kept;
  put_y(args, at, kept ? in_x(args, at) * (R)args.scale : (R)0);
  put_mask(args, at, kept ? (R)1 : (R)0);
}
