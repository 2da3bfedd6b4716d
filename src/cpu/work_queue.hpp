// Work queue for items of uneven cost: a thread takes the next item when it finishes one.
#pragma once

#include <algorithm>
#include <atomic>

#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Calls body(item, thread) once for every item below `count`, on at most `threads` threads; thread
// < `threads`. The assignment of items to threads is not deterministic: items must not share
// accumulators.
template <class Body>
void for_each_item(std::int64_t count, std::int64_t threads, const Body& body) {
  std::atomic<std::int64_t> next{0};
  parallel_for(std::min(count, threads), 1, [&](std::int64_t, std::int64_t, int thread) {
    for (std::int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      body(item, thread);
  });
}

}  // namespace ashlar::cpu
