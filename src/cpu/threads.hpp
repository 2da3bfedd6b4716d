// parallel_for over a thread team.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// Threads available to a parallel_for: 1 inside another parallel region.
int thread_count();

// Grain of a parallel_for: the minimum number of items per thread, for items of `elements` elements
// each. Waking and joining a spinning team takes about 0.8 us; two threads beat one from about 3 us
// of single-thread work on (measured on an Ice Lake server). That is 16 to 32 thousand elements of
// a copy, or 3 thousand of exp or erf; `flops` (per element, an elementary function counts 10)
// distinguishes them.
std::int64_t items_per_thread(std::int64_t elements, double flops = 1);

namespace detail {
void fence_streams();
void run_parallel(std::int64_t count, int threads, void* state,
                  void (*body)(void* state, std::int64_t begin, std::int64_t end, int thread));
}  // namespace detail

// Calls body(begin, end, thread) over disjoint ranges that cover [0, count); thread <
// thread_count(). `grain`: minimum number of items per thread. Allocates nothing. Non-temporal
// stores of the bodies (stream_row) are fenced before the return.
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
