// Scatter: y is base, combined with every element of source whose index selects it, in row-major
// order.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], where[kRank_index], from[kRank_source];
  unflatten(n, args.y_dims, at);
  R value = in_base(args, at);
  // With elements, those of the line through `at`.
  Box<kRank_index> places = whole_box<kRank_index>(args.index_dims);
  if (!kSlices) {
#pragma unroll
    for (int axis = 0; axis < kRank_index; ++axis) {
      if (axis == kAxis) continue;
      places.begin[axis] = at[axis < kRank_y ? axis : 0];
      places.end[axis] = places.begin[axis] + 1;
    }
  }
  for (bool more = places.start(where); more; more = places.next(where)) {
    if (integer_index(args, where) != at[kAxis]) continue;
    selection_place(at, where, from);
    value = combined(value, in_source(args, from));
  }
  put_y(args, at, value);
}
