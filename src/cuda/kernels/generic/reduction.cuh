// Reduction over every axis in which y has extent 1; over no elements the identity. For few outputs
// of many terms, pass 0 gives each of args.parts threads a share of an output's terms, pass 1
// combines the parts into args.groups partials, and pass 2 combines these.
enum Mode { kAdd, kMul, kMin, kMax, kAmax, kAvg, kNorm1, kNorm2, kMulNoZeros };

// Partial result of an output: the folded value, and merit and position of the term that wins (arg
// min / max).
struct Partial {
  R value, merit;
  Index best;  // -1: no term yet
};
__device__ inline Partial nothing() {
  R neutral = 0;
  if (kMode == kMul || kMode == kMulNoZeros) neutral = 1;
  if (kMode == kMin) neutral = infinity();
  if (kMode == kMax) neutral = -infinity();
  return {neutral, 0, -1};
}
__device__ inline R joined(R a, R b) {
  switch (kMode) {
    case kMul:
    case kMulNoZeros: return a * b;
    case kMin: return op_min(a, b);
    case kMax:
    case kAmax: return op_max(a, b);
    default: return a + b;
  }
}
// Ties go to the first term; the first NaN wins over numbers.
__device__ inline bool beats(const Partial& a, const Partial& b) {
  if (a.best < 0 || b.best < 0) return b.best < 0;
  const bool nan_a = a.merit != a.merit, nan_b = b.merit != b.merit;
  if (nan_a != nan_b) return nan_a;
  return a.merit > b.merit || ((nan_a || a.merit == b.merit) && a.best < b.best);
}
__device__ inline void join(Partial& to, const Partial& from) {
  to.value = joined(to.value, from.value);
  if (kHas_index && beats(from, to)) {
    to.merit = from.merit;
    to.best = from.best;
  }
}
__device__ inline Partial term(R x, Index position) {
  R value = x;
  if (kMode == kMulNoZeros && x == 0) value = 1;
  if (kMode == kAmax || kMode == kNorm1) value = fabs(x);
  if (kMode == kNorm2) value = x * x;
  return {value, kMode == kMin ? -x : value, position};
}

// Folds the terms first, first + step, ... of an output.
__device__ inline Partial share(const Args& args, const Index (&at)[kRank_y], Index first,
                                Index step) {
  Partial result = nothing();
  for (Index t = first; t < args.terms; t += step) {
    Index from[kRank_x];
    unflatten(t, args.reduced, from);  // 0 on the axes that are kept
#pragma unroll
    for (int axis = 0; axis < kRank_x; ++axis) from[axis] += at[axis];
    join(result, term(in_x(args, from), t));
  }
  return result;
}

// Layout of the partials: neighbouring threads read neighbouring elements, those of one output or
// one of each output.
__device__ inline Index place(const Args& args, Index output, Index part, Index parts) {
  return kOutputsFirst ? part * args.outputs + output : output * parts + part;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y];
  Partial* parts = (Partial*)args.partials;
  Partial* groups = parts + args.outputs * args.parts;
  if (args.pass < 2) {
    const Index count = args.pass == 0 ? args.parts : args.groups;
    const Index output = kOutputsFirst ? n % args.outputs : n / count;
    const Index part = kOutputsFirst ? n / args.outputs : n % count;
    if (args.pass == 0) {
      unflatten(output, args.y_dims, at);
      parts[n] = share(args, at, part, args.parts);
    } else {
      Partial sum = nothing();
      for (Index p = part; p < args.parts; p += count)
        join(sum, parts[place(args, output, p, args.parts)]);
      groups[n] = sum;
    }
    return;
  }
  unflatten(n, args.y_dims, at);
  Partial all = nothing();
  if (args.groups == 0) all = share(args, at, 0, 1);
  for (Index g = 0; g < args.groups; ++g) join(all, groups[place(args, n, g, args.groups)]);
  R result = all.value;
  if (kMode == kNorm2) result = sqrt(result);
  if (kMode == kAvg)
    result = kInteger ? op_div_integer(result, (R)args.terms) : result / (R)args.terms;
  put_y(args, at, result);
  put_index(args, at, (double)all.best);
}
