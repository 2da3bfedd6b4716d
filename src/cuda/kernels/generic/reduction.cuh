// Over every axis in which y has extent 1; over nothing the neutral element.
enum Mode { kAdd, kMul, kMin, kMax, kAmax, kAvg, kNorm1, kNorm2, kMulNoZeros };

__device__ inline R step(R so_far, R x) {
  switch (kMode) {
    case kMul: return so_far * x;
    case kMulNoZeros: return x != 0 ? so_far * x : so_far;
    case kMin: return op_min(so_far, x);
    case kMax: return op_max(so_far, x);
    case kAmax: return op_max(so_far, (R)fabs(x));
    case kNorm1: return so_far + fabs(x);
    case kNorm2: return so_far + x * x;
    default: return so_far + x;
  }
}
__device__ inline R neutral() {
  if (kMode == kMul || kMode == kMulNoZeros) return 1;
  if (kMode == kMin) return infinity();
  return kMode == kMax ? -infinity() : 0.f;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], from[kRank_x];
  unflatten(n, args.y_dims, at);
  Box<kRank_x> terms = whole_box<kRank_x>(args.x_dims);
  for (int axis = 0; axis < kRank_x; ++axis)
    if (args.y_dims[axis] != 1) {
      terms.begin[axis] = at[axis];
      terms.end[axis] = at[axis] + 1;
    }
  R result = neutral(), leader = 0;
  Index count = 0, best = -1;
  for (bool more = terms.start(from); more; more = terms.next(from)) {
    const R x = in_x(args, from);
    result = step(result, x);
    // The first of equals, or the first NaN.
    const R merit = kMode == kAmax ? (R)fabs(x) : kMode == kMin ? -x : x;
    if (best < 0 || merit > leader || (merit != merit && leader == leader)) {
      leader = merit;
      best = count;
    }
    ++count;
  }
  if (kMode == kNorm2) result = sqrt(result);
  if (kMode == kAvg) result = kInteger ? op_div_integer(result, (R)count) : result / (R)count;
  put_y(args, at, result);
  put_index(args, at, (double)best);
}
