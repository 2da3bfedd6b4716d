// Resampling: the inputs of an output. Pooling: position k of the window of output o reads i = o *
// stride - padding + k. Interpolation: output o has an input coordinate per axis.
enum Mode { kNearest, kBilinear, kAverageIncludingPadding, kAverageExcludingPadding, kMaxPool };
enum Padding { kZero, kNegativeInfinity, kEdge };
static const int kRank = kSpatial + 2;
static const bool kPooling = kMode >= kAverageIncludingPadding;

__device__ inline Index window_start(const Args& args, int axis, Index out) {
  return out * args.stride[axis] - args.padding[axis];
}
// Sets the spatial part of `in` to the input of window position `k` of output `out`. False:
// padding.
__device__ inline bool find_source(const Args& args, const int64* x_dims, const Index (&out)[kRank],
                                   const Index (&k)[kSpatial], Index (&in)[kRank]) {
  bool inside = true;
  for (int axis = 0; axis < kSpatial; ++axis) {
    Index i = window_start(args, axis, out[axis + 2]) + k[axis];
    const Index last = x_dims[axis + 2] - 1;
    if (kMode == kMaxPool && kPadding == kEdge)
      i = i < 0 ? 0 : i > last ? last : i;
    else
      inside = inside && i >= 0 && i <= last;
    in[axis + 2] = i;
  }
  return inside;
}
// Divisor of an average: the whole window, or its part inside x.
__device__ inline Index average_count(const Args& args, const int64* x_dims,
                                      const Index (&out)[kRank]) {
  Index count = 1;
  for (int axis = 0; axis < kSpatial; ++axis) {
    const Index first = window_start(args, axis, out[axis + 2]), end = first + args.window[axis];
    const Index begin = first < 0 ? 0 : first;
    const Index stop = end < x_dims[axis + 2] ? end : x_dims[axis + 2];
    const Index inside = stop > begin ? stop - begin : 0;
    count *= kMode == kAverageIncludingPadding ? args.window[axis] : inside;
  }
  return count;
}
__device__ inline R average(R sum, Index count) {
  return kInteger ? op_div_integer(sum, (R)count) : sum / (R)count;
}

// The largest element of a window and its row-major position: ties go to the first, the first NaN
// wins. Padding with -inf never wins.
struct Maximum {
  R value;
  Index position;
};
__device__ inline Maximum window_maximum(const Args& args, const Index (&out)[kRank]) {
  Maximum best = {-infinity(), -1};
  Index k[kSpatial], in[kRank], position = 0;
  in[0] = out[0];
  in[1] = out[1];
  const Box<kSpatial> window = whole_box<kSpatial>(args.window);
  for (bool more = window.start(k); more; more = window.next(k), ++position) {
    const bool inside = find_source(args, args.x_dims, out, k, in);
    if (!inside && kPadding != kZero) continue;
    const R seen = inside ? in_x(args, in) : (R)0;
    if (best.position < 0 || seen > best.value || (seen != seen && best.value == best.value))
      best = {seen, position};
  }
  return best;
}

// --- interpolation
__device__ inline Index nearest_source(Index out, Index out_extent, Index in_extent) {
  const Index source = out * in_extent / out_extent;
  return source < in_extent ? source : in_extent - 1;
}
// Pixel centres are at halves; with align_corners the first and last pixels coincide.
__device__ inline R linear_source(Index out, Index out_extent, Index in_extent) {
  const R last = (R)(in_extent - 1);
  if (kAlignCorners) return out_extent == 1 ? (R)0 : (R)out * (last / (R)(out_extent - 1));
  const R source = ((R)out + (R)0.5) * ((R)in_extent / (R)out_extent) - (R)0.5;
  return source < 0 ? (R)0 : source > last ? last : source;
}
// Weight of input `in` in output `out` along one axis.
__device__ inline R axis_weight(Index out, Index out_extent, Index in, Index in_extent) {
  if (kMode == kNearest) return nearest_source(out, out_extent, in_extent) == in ? (R)1 : (R)0;
  const R weight = (R)1 - fabs(linear_source(out, out_extent, in_extent) - (R)in);
  return weight > 0 ? weight : (R)0;
}
__device__ inline R interpolation_weight(const int64* y_dims, const Index (&out)[kRank],
                                         const int64* x_dims, const Index (&in)[kRank]) {
  R weight = 1;
  for (int axis = 2; axis < kRank; ++axis)
    weight *= axis_weight(out[axis], y_dims[axis], in[axis], x_dims[axis]);
  return weight;
}
