// A pointwise program without an anchor.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank > 0 ? kRank : 1] = {};
  if (kRank > 0) unflatten(n, args.space, at);
  epilogue<1>(args, at);
}
