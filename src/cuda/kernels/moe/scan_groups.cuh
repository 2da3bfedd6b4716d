// Groups of rows, as many at a time as one block has threads. Comes after a kernel's head and
// generic/moe_routing.cuh.
#include "lib/elements.cuh"

static const int kThreads = 512;

// What `join` makes of the numbers of this thread and of all before it.
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
// The same of all threads, handed out by the last one.
__device__ inline int last_of_block(int number) {
  __shared__ int last;
  if (threadIdx.x == kThreads - 1) last = number;
  __syncthreads();
  const int result = last;
  __syncthreads();
  return result;
}

// Where a group says that it begins, of `all` rows.
__device__ inline int offset_of(const Args& args, int group, int all) {
  return (int)within(integer_first_token_offset(args, {(Index)group, 0, 0}), 0, all);
}
// Where the group begins that a thread has of those from `first` on. Offsets only rise: at the
// largest so far, which is `largest` before these groups.
__device__ inline int begin_of_group(const Args& args, int first, int all, int largest) {
  const int group = first + (int)threadIdx.x;
  const int own = group < (int)args.first_token_offset_dims[0] ? offset_of(args, group, all) : 0;
  return max(largest, scan_threads(own, [](int x, int y) { return max(x, y); }));
}
