// top_k along one axis, one CTA per line at a time: the best elements so far and a tile of further
// ones are sorted together (bitonic), where the tile has an element better than the k-th.
#include "lib/coordinates.cuh"
#include "lib/reduce.cuh"

struct Entry {
  R value;
  Index place;  // in the line; -1: none, behind all elements
};
__device__ inline bool is_before(const Entry& a, const Entry& b) {
  if (a.place < 0 || b.place < 0) return a.place >= 0;
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  if (nan_a != nan_b) return kLargest ? nan_a : nan_b;
  if (!nan_a && a.value != b.value) return kLargest ? a.value > b.value : a.value < b.value;
  return a.place < b.place;
}

// `count` entries, a power of two.
__device__ __noinline__ void sort(Entry* entries, int64 count) {
  for (int64 size = 2; size <= count; size *= 2)
    for (int64 step = size / 2; step > 0; step /= 2) {
      for (int64 i = threadIdx.x; i < count / 2; i += kThreads) {
        const int64 low = i / step * 2 * step + i % step, high = low + step;
        const bool ascending = (low & size) == 0;
        const Entry a = entries[low], b = entries[high];
        if (is_before(b, a) == ascending) {
          entries[low] = b;
          entries[high] = a;
        }
      }
      __syncthreads();
    }
}

__device__ inline void unit(const Args& args, int64 n) {
  Entry* const entries = (Entry*)args.entries + n * args.capacity;
  for (int64 line = n; line < args.line_count; line += args.units) {
    Index at[kRank_x];
    unflatten(line, args.lines, at);
    const auto load = [&](int64 place) {
      Entry entry = {0, -1};
      if (place >= args.length) return entry;
      at[kAxis] = place;
      entry.value = in_x(args, at);
      entry.place = place;
      return entry;
    };
    for (int64 i = threadIdx.x; i < args.capacity; i += kThreads) entries[i] = load(i);
    __syncthreads();
    sort(entries, args.capacity);
    const int64 tile = args.capacity / 2;
    for (int64 first = args.capacity; first < args.length; first += tile) {
      const Entry worst = entries[args.k - 1];
      R better = 0;
      for (int64 i = threadIdx.x; i < tile; i += kThreads)
        if (is_before(load(first + i), worst)) better = 1;
      if (block_reduce<kThreads / kLanes, Max>(better) == 0) continue;
      for (int64 i = threadIdx.x; i < tile; i += kThreads) entries[tile + i] = load(first + i);
      __syncthreads();
      sort(entries, args.capacity);
    }
    for (int64 j = threadIdx.x; j < args.k; j += kThreads) {
      at[kAxis] = j;
      put_values(args, at, entries[j].value);
      put_index(args, at, (double)entries[j].place);
    }
    __syncthreads();
  }
}
