// Matmul: c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].
#include "lib/long_sum.cuh"

static const int kRow = kRank_c - 2, kColumn = kRank_c - 1;

__device__ inline Index within(int64 given, Index extent) {
  return given < 0 ? 0 : given < extent ? given : extent;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_c], a[kRank_c], b[kRank_c];
  unflatten(n, args.c_dims, at);
  const bool outside =
      (kHas_m_override && at[kRow] >= integer_m_override(args, at)) ||
      (kHas_n_override && at[kColumn] >= integer_n_override(args, at));
  if (outside) return put_c(args, at, (R)args.padding_value);
  const Index depth = args.a_dims[kColumn];
  const Index terms = kHas_k_override ? within(integer_k_override(args, at), depth) : depth;
  copy(at, a);
  copy(at, b);
  LongSum<R> sum;
  for (Index k = 0; k < terms; ++k) {
    a[kColumn] = b[kRow] = k;
    sum.add_product(in_a(args, a), in_b(args, b));
  }
  put_c(args, at, sum.total());
}
