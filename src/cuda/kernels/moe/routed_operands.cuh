// Operands of the weight gradient, whose K runs over the rows of a mixture. TMA loads rows that are
// in memory order, except the last K-block of a group, which threads load and pad with zeros;
// threads always load rows that are gathered. Requires moe/expert_k_blocks.cuh,
// sm90/load_matrix.cuh, sm90/prologue_pieces.cuh and the generated header; precedes
// sm90/prologue_tiles.cuh. The header defines a_at<kCount>(args, at, values) and b_at, programs
// over (1, row, column), kTokenIsA, and kRoutes: whether args.routes (moe/route_rows.cuh) holds the
// routing.

// -1: the row contributes nothing.
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
