// Mixture of experts, routing: the expert, source row and destination row of each row.
__device__ inline Index within(int64 given, Index low, Index high) {
  return given < low ? low : given < high ? given : high;
}
__device__ inline Index rows(const Args& args) {
  return kGather ? args.token_index_dims[1] : args.token_dims[1];
}
// The rows [begin, end) of group g, where `begin` is the end of the previous group. Offsets are
// clamped to be non-decreasing within [0, rows].
__device__ inline Index first_begin(const Args& args) {
  return within(integer_first_token_offset(args, {0, 0, 0}), 0, rows(args));
}
__device__ inline Index end_of(const Args& args, Index g, Index begin) {
  if (g + 1 >= args.first_token_offset_dims[0]) return rows(args);
  return within(integer_first_token_offset(args, {g + 1, 0, 0}), begin, rows(args));
}
// The expert of a row; -1: none.
__device__ inline Index expert_of(const Args& args, Index row) {
  Index found = -1, begin = first_begin(args);
  for (Index g = 0; g < args.first_token_offset_dims[0]; ++g) {
    const Index end = end_of(args, g, begin);
    if (begin <= row && row < end) found = g % args.experts;
    begin = end;
  }
  return found;
}
__device__ inline Index position(int64 given, Index extent) {
  return given >= 0 && given < extent ? given : -1;
}
// The row of token that a row reads. -1: zeros.
__device__ inline Index source(const Args& args, Index row) {
  if (!kGather) return row;
  return position(integer_token_index(args, {0, row, 0}), args.token_dims[1]);
}
// The row of output that a row is added to. -1: none.
__device__ inline Index destination(const Args& args, Index row, Index output_rows) {
  if (!kScatter) return row;
  const Index token = position(integer_token_index(args, {0, row, 0}), output_rows);
  const Index rank = position(integer_token_ks(args, {0, row, 0}), args.top_k);
  if (token < 0 || rank < 0 || rank >= output_rows) return -1;
  // token * top_k + rank < output_rows, without overflow.
  if (token > (output_rows - 1 - rank) / args.top_k) return -1;
  return token * args.top_k + rank;
}
