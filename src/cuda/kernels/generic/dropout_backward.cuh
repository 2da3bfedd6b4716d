// Dropout backward: dx = dy / (1 - probability) where the mask, or the regenerated random stream,
// keeps the element.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_dy];
  unflatten(n, args.dy_dims, at);
  const bool kept =
      kHas_mask ? in_mask(args, at) != 0 : stream_of(args).uniform(n) < (float)args.kept;
  put_dx(args, at, kept ? in_dy(args, at) * (R)args.scale : (R)0);
}
