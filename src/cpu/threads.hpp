// Splitting work over threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// Threads a parallel_for may use from here: 1 inside another parallel region.
int thread_count();

// The least number of items worth a thread of their own, for items of this many elements: the grain
// of a parallel_for. Waking a waiting team and joining it again takes about 0.8 us, and two threads
// overtake one where that one needs about 3 us (measured on an Ice Lake server, team spinning): 16
// to 32 thousand elements that are only moved, 3 thousand that pass through exp or erf, which
// `flops` (per element, an elementary function counting 10) tells apart.
std::int64_t items_per_thread(std::int64_t elements, double flops = 1);

namespace detail {
void fence_streams();
void run_parallel(std::int64_t count, int threads, void* state,
                  void (*body)(void* state, std::int64_t begin, std::int64_t end, int thread));
}  // namespace detail

// Calls body(begin, end, thread) over disjoint ranges that cover [0, count). `thread` is below
// thread_count(). `grain` is the least number of items worth a thread of its own. Allocates
// nothing. What bodies stored past the caches (stream_row) is ordered before the return.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  if (count <= 0) return;
  const std::int64_t most = (count + grain - 1) / grain;
  const int available = thread_count();
  const int threads = static_cast<int>(most < available ? most : available);
  if (threads <= 1) {
    body(std::int64_t{0}, count, 0);
    return detail::fence_streams();
  }
  detail::run_parallel(count, threads, &body,
                       [](void* state, std::int64_t begin, std::int64_t end, int thread) {
                         (*static_cast<std::remove_reference_t<Body>*>(state))(begin, end, thread);
                       });
}

}  // namespace ashlar::cpu
