// Gradient of padding: the sum of dy over the positions that read an element of x. On every axis
// these are up to three ranges: before, inside and behind x.
enum Mode { kConstant, kReflect, kEdge, kCircular };

struct Range {
  Index begin, end;
};
__device__ inline Range one(Index i, Index end) {
  return i >= 0 && i < end ? Range{i, i + 1} : Range{0, 0};
}
__device__ inline Range readers(const Args& args, int axis, Index i, int which) {
  const Index before = args.before[axis], extent = args.dx_dims[axis], end = before + extent;
  const Index padded = args.dy_dims[axis];
  const Range none = {0, 0};
  if (which == 1) return one(before + i, padded);
  if (kMode == kReflect && which == 0) return i == 0 ? none : one(before - i, before);
  if (kMode == kReflect) return i == extent - 1 ? none : one(end + extent - 2 - i, padded);
  if (kMode == kEdge && which == 0) return i == 0 ? Range{0, before} : none;
  if (kMode == kEdge) return i == extent - 1 ? Range{end, padded} : none;
  if (kMode == kCircular && which == 0) return one(before + i - extent, before);
  if (kMode == kCircular) return one(end + i, padded);
  return none;
}

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_dx], from[kRank_dx];
  unflatten(n, args.dx_dims, at);
  double sum = 0;
  for (int choice = 0; choice < kChoices; ++choice) {
    Box<kRank_dx> box;
    int rest = choice;
    for (int axis = kRank_dx - 1; axis >= 0; --axis) {
      const Range range = readers(args, axis, at[axis], kChoices == 1 ? 1 : rest % 3);
      rest /= 3;
      box.begin[axis] = range.begin;
      box.end[axis] = range.end;
    }
    for (bool more = box.start(from); more; more = box.next(from)) sum += (double)in_dy(args, from);
  }
  put_dx(args, at, (R)sum);
}
