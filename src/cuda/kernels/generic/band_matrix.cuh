// Banded storage: row i holds the columns from i - lower (+ the offset of its batch) on. Expanding
// scatters them to their columns, contracting gathers them; pad_value elsewhere.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], batch[kRank_y] = {};
  unflatten(n, args.y_dims, at);
  Index first = at[kAxis - 1] - args.lower;
  if (kHas_kv_token_offset) {
    // Clamps offsets that move the band out of the matrix, to avoid overflow.
    const Index reach = args.x_dims[kAxis - 1] + args.columns + args.band;
    if (kAxis > 1) batch[0] = at[0];
    const int64 shift = integer_kv_token_offset(args, batch);
    first += shift < -reach ? -reach : shift < reach ? shift : reach;
  }
  Index from[kRank_y];
  copy(at, from);
  from[kAxis] += kExpand ? -first : first;
  const bool inside = from[kAxis] >= 0 && from[kAxis] < args.x_dims[kAxis];
  put_y(args, at, inside ? in_x(args, from) : (R)args.pad_value);
}
