// Rotary position embedding: one thread per element of y. kFrequencies: angle per position, by
// pair; angles are computed and reduced in double precision.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[4];
  unflatten(n, args.x_dims, at);
  const Index d = at[3];
  const R own = in_x(args, at);
  if (d >= args.width) return put_y(args, at, own);

  const Index half = args.width / 2;
  const Index pair = kInterleaved ? d / 2 : d % half;
  const bool is_second = kInterleaved ? d % 2 != 0 : d >= half;
  const Index distance = kInterleaved ? 1 : half;
  Index other[4] = {at[0], at[1], at[2], is_second ? d - distance : d + distance};
  R cosine, sine;
  if constexpr (kHas_cos) {
    const Index where[4] = {at[0], at[1], at[2], pair};
    cosine = in_cos(args, where);
    sine = in_sin(args, where);
  } else {
    const Index where[2] = {at[0], at[2]};
    const int64 position = kHas_positions ? integer_positions(args, where) : at[2];
    const double angle = (double)position * kFrequencies[pair];
    cosine = (R)(cos(angle) * args.scale);
    sine = (R)(sin(angle) * args.scale);
  }
  // The first element of a pair becomes u cos - v sin, the second v cos + u sin.
  if (is_second == kInverse) sine = -sine;
  put_y(args, at, own * cosine + in_x(args, other) * sine);
}
