// Paged KV cache: y[b, h, s, d] = container[page_table[b][s / block], h, s % block, d] for s <
// sequence[b], else 0.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[4];
  unflatten(n, args.y_dims, at);
  const Index s = at[kTransposed ? 3 : 2], d = at[kTransposed ? 2 : 3];
  const Index block = args.container_dims[2];
  R value = 0;
  if (!kHas_sequence || s < integer_sequence(args, {at[0], 0, 0, 0})) {
    const int64 page = integer_page_table(args, {at[0], 0, s / block, 0});
    if (page >= 0 && page < args.container_dims[0])
      value = in_container(args, {page, at[1], s % block, d});
  }
  put_y(args, at, value);
}
