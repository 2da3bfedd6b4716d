// Cross-entropy, forward: loss and stats of a row; with `mean` a second launch adds the losses.

// Moves a sum of exponentials to a larger maximum. Equal maxima may be infinite.
__device__ inline R rescale(R sum, R from, R to) { return from == to ? sum : sum * exp(from - to); }

// Subtracts 0 while all logits seen are -inf: -inf - -inf is NaN.
__device__ inline R shift_of(R largest) {
  return largest == lowest() ? (R)0 : largest;
}

__device__ inline R loss_of(const Args& args, Index (&at)[kRank], R largest, R log_sum, R logits) {
  const int64 target = target_of(args, at);
  if (target == args.ignore_index) return 0;
  if (!is_class(args, target)) return not_a_number();
  R wanted[1];
  at[kRank - 1] = (Index)target;
  logits_of<1>(args, at, wanted);
  at[kRank - 1] = 0;
  const R loss = log_sum - (wanted[0] - largest);
  if constexpr (!kSmooths) return loss;
  const R smoothing = (R)args.smoothing, mean = logits / (R)args.classes;
  return ((R)1 - smoothing) * loss + smoothing * (log_sum - (mean - largest));
}

template <int kCount>
__device__ inline void row_losses(const Args& args) {
  constexpr int64 kStep = (int64)kThreads * kCount;
  for (int64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    Index at[kRank];
    place(args, row, at);
    R largest = lowest(), sum = 0, logits = 0;
    const int64 begin = (int64)threadIdx.x * kCount;
    for (int64 first = begin; first < args.classes; first += kUnroll * kStep) {
      R v[kUnroll][kCount];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        fill(lowest(), v[u]);
        at[kRank - 1] = (Index)(first + u * kStep);
        if (first + u * kStep < args.classes) logits_of<kCount>(args, at, v[u]);
      }
      R highest = largest;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
#pragma unroll
        for (int l = 0; l < kCount; ++l) {
          highest = Larger::apply(highest, v[u][l]);
          if (kSmooths && first + u * kStep < args.classes) logits += v[u][l];
        }
      const R shift = shift_of(highest);
      sum = rescale(sum, largest, highest);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
#pragma unroll
        for (int l = 0; l < kCount; ++l) sum += exp_shifted(v[u][l], shift);
      largest = highest;
    }
    const R highest = block_reduce<kWarps, Larger>(largest);
    sum = block_reduce<kWarps, Sum>(rescale(sum, largest, highest));
    if constexpr (kSmooths) logits = block_reduce<kWarps, Sum>(logits);
    if (threadIdx.x != 0) continue;
    at[kRank - 1] = 0;
    const R log_sum = log(sum);
    if constexpr (kHasStats) store_stats(args, at, highest + log_sum);
    R loss[1] = {loss_of(args, at, highest, log_sum, logits)};
    if constexpr (kMean)
      ((R*)args.losses)[row] = loss[0];
    else
      store_loss<1>(args, at, loss);
  }
}

template <int kCount>
__device__ inline void mean_loss(const Args& args) {
  double sum = 0;
  for (int64 row = threadIdx.x; row < args.rows; row += kThreads)
    sum += (double)((const R*)args.losses)[row];
  sum = block_reduce<kWarps, Sum>(sum);
  const int64 count = counted_rows(args);
  if (threadIdx.x != 0) return;
  const Index origin[kRank] = {};
  R mean[1] = {(R)(sum / (double)count)};
  store_loss<1>(args, origin, mean);
}

template <int kCount>
__device__ inline void launch(const Args& args) {
  if constexpr (kIsMeanLaunch)
    mean_loss<kCount>(args);
  else
    row_losses<kCount>(args);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    cross_entropy_forward(const __grid_constant__ Args args) {
  launch<kVector>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    cross_entropy_forward_elements(const __grid_constant__ Args args) {
  launch<1>(args);
}
