// Factors whose depth is rows of a mixture: rows in memory order come by the copy engine, but for
// the blocks at the end of a group, whose tiles threads fill up with zeros, and rows that are
// gathered come by threads always. Comes after a kernel's head, moe/expert_k_blocks.cuh,
// sm90/load_matrix.cuh and sm90/prologue_pieces.cuh, and before sm90/prologue_tiles.cuh. The head
// has a_at<kCount>(args, at, values) and b_at, programs over (1, row, column), kTokenIsA, and
// kRoutes: whether args.routes (moe/route_rows.cuh) has where rows are.

// -1: the row counts for nothing.
template <bool kOfToken>
__device__ inline int place_of_row(const Args& args, Index row) {
  if constexpr (!kRoutes) return (int)row;
  const uint2 route = ((const uint2*)args.routes)[row];
  return (int)(kOfToken ? route.x : route.y);
}
template <int kCount>
__device__ inline void keep_where(bool counts, R (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = counts ? values[i] : (R)0;
}
template <int kCount>
__device__ inline void operand_a(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
  const int row = place_of_row<kTokenIsA>(args, at[1]);
  a_at<kCount>(args, {0, (Index)max(row, 0), at[2]}, values);
  keep_where(row >= 0, values);
}
template <int kCount>
__device__ inline void operand_b(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
  const int row = place_of_row<!kTokenIsA>(args, at[1]);
  b_at<kCount>(args, {0, (Index)max(row, 0), at[2]}, values);
  keep_where(row >= 0, values);
}
