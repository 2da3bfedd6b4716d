// dx = dy / (1 - probability) where the mask, or the stream drawn again, keeps the element.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_dy];
  unflatten(n, args.dy_dims, at);
  bool kept;
  if (kHas_mask)
    kept = in_mask(args, at) != 0;
  else
    kept = uniform_open(philox_element(seed_of(args), offset_of(args), (uint64)n)) <
           (float)args.kept;
  put_dx(args, at, kept ? in_dy(args, at) * (R)args.scale : (R)0);
}
