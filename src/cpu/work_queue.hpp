// Items of uneven work: threads take the next one when they are done with theirs.
#pragma once

#include <algorithm>
#include <atomic>

#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Calls body(item, thread) once for every item below `count`, on at most `threads` threads;
// `thread` is below that number. Which thread takes an item is left open: items must not share
// sums.
template <class Body>
void for_each_item(std::int64_t count, std::int64_t threads, const Body& body) {
  std::atomic<std::int64_t> next{0};
  parallel_for(std::min(count, threads), 1, [&](std::int64_t, std::int64_t, int thread) {
    for (std::int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      body(item, thread);
  });
}

}  // namespace ashlar::cpu
