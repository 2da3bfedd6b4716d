// Cross-entropy, backward: dx = dloss * (exp(x - stats) - (1 - s) * [class == target] - s / C).
// With `mean` a launch before it counts the rows that are not ignored.

template <int kCount>
__device__ inline void row_gradients(const Args& args) {
  constexpr int64 kStep = (int64)kThreads * kCount;
  const R uniform = (R)(args.smoothing / (double)args.classes), certain = (R)1 - (R)args.smoothing;
  for (int64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    Index at[kRank];
    place(args, row, at);
    const int64 target = target_of(args, at);
    const bool ignored = target == args.ignore_index, valid = is_class(args, target);
    R stats[1], factor[1];
    stats_of<1>(args, at, stats);
    dloss_of<1>(args, at, factor);
    if constexpr (kMean) factor[0] /= (R) * (const int64*)args.count;
    const R shift = stats[0];
    const int64 begin = (int64)threadIdx.x * kCount;
    for (int64 first = begin; first < args.classes; first += kUnroll * kStep) {
      R v[kUnroll][kCount];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        fill((R)0, v[u]);
        at[kRank - 1] = (Index)(first + u * kStep);
        if (first + u * kStep < args.classes && !ignored) logits_of<kCount>(args, at, v[u]);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64 column = first + u * kStep;
        if (column >= args.classes) break;
#pragma unroll
        for (int l = 0; l < kCount; ++l) {
          const R own = column + l == target ? certain + uniform : uniform;
          v[u][l] = (exp_shifted(v[u][l], shift) - own) * factor[0];
          if (!valid) v[u][l] = not_a_number();
          if (ignored) v[u][l] = 0;
        }
        at[kRank - 1] = (Index)column;
        store_dx<kCount>(args, at, v[u]);
      }
    }
  }
}

template <int kCount>
__device__ inline void launch(const Args& args) {
  if constexpr (kIsMeanLaunch) {
    const int64 count = counted_rows(args);
    if (threadIdx.x == 0) *(int64*)args.count = count;
  } else {
    row_gradients<kCount>(args);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    cross_entropy_backward(const __grid_constant__ Args args) {
  launch<kVector>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    cross_entropy_backward_elements(const __grid_constant__ Args args) {
  launch<1>(args);
}
