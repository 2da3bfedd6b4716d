// A team of threads that run many short steps with barriers between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// Barrier of a thread team.
class TeamBarrier {
 public:
  // Returns when `team` threads have called it; writes before the call are visible to all after it.
  void wait(int team);

 private:
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
};

namespace detail {
void run_team(int threads, void* state, void (*body)(void* state, int thread, int team));
}

// Calls body(thread, team) concurrently on every thread of a team of at most `threads`, so that the
// threads may use barriers. Allocates nothing.
template <class Body>
void parallel_team(int threads, Body&& body) {
  if (threads <= 1) return body(0, 1);
  detail::run_team(threads, &body, [](void* state, int thread, int team) {
    (*static_cast<std::remove_reference_t<Body>*>(state))(thread, team);
  });
}

}  // namespace ashlar::cpu
