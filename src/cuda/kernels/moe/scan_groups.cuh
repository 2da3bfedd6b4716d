// Scans over groups of rows, kThreads at a time, in one CTA. Requires the generated header and
// generic/moe_routing.cuh.
#include "lib/elements.cuh"

static const int kThreads = 512;

// Inclusive scan over the CTA with the operation `join`.
template <class Join>
__device__ inline int scan_threads(int number, Join join) {
  __shared__ int numbers[kThreads];
  const int thread = (int)threadIdx.x;
  for (int step = 1; step < kThreads; step *= 2) {
    numbers[thread] = number;
    __syncthreads();
    if (thread >= step) number = join(number, numbers[thread - step]);
    __syncthreads();
  }
  return number;
}
// Broadcasts the value of the last thread, the result of a scan, to the CTA.
__device__ inline int last_of_block(int number) {
  __shared__ int last;
  if (threadIdx.x == kThreads - 1) last = number;
  __syncthreads();
  const int result = last;
  __syncthreads();
  return result;
}

// First row of a group as given, clamped to [0, all].
__device__ inline int offset_of(const Args& args, int group, int all) {
  return (int)within(integer_first_token_offset(args, {(Index)group, 0, 0}), 0, all);
}
// First row of the thread's group among those from `first` on. Offsets are made monotonic: each is
// at least the largest before it, which is `largest` before these groups.
__device__ inline int begin_of_group(const Args& args, int first, int all, int largest) {
  const int group = first + (int)threadIdx.x;
  const int own = group < (int)args.first_token_offset_dims[0] ? offset_of(args, group, all) : 0;
  return max(largest, scan_threads(own, [](int x, int y) { return max(x, y); }));
}
