// Threads that work through many short steps together.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// Where all threads of a team wait for each other.
class TeamBarrier {
 public:
  // Returns once `team` threads have called it; what each wrote before, all see after.
  void wait(int team);

 private:
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
};

namespace detail {
void run_team(int threads, void* state, void (*body)(void* state, int thread, int team));
}

// Calls body(thread, team) on every thread of a team of at most `threads`: all at once, so that
// they may wait for each other. Allocates nothing.
template <class Body>
void parallel_team(int threads, Body&& body) {
  if (threads <= 1) return body(0, 1);
  detail::run_team(threads, &body, [](void* state, int thread, int team) {
    (*static_cast<std::remove_reference_t<Body>*>(state))(thread, team);
  });
}

}  // namespace ashlar::cpu
