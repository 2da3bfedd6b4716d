// Thread teams and their barrier, on OpenMP.
#include "cpu/team.hpp"

#include <thread>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

namespace ashlar::cpu {

void TeamBarrier::wait(int team) {
  if (team <= 1) return;
  // about a millisecond: a thread that yields earlier returns too late
  constexpr int kSpins = 1 << 14;
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == team - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
    if (spins < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }
}

namespace detail {

#ifdef ASHLAR_NO_OPENMP

void run_team(int, void* state, void (*body)(void* state, int thread, int team)) {
  body(state, 0, 1);
}

#else

void run_team(int threads, void* state, void (*body)(void* state, int thread, int team)) {
#pragma omp parallel num_threads(threads)
  body(state, omp_get_thread_num(), omp_get_num_threads());
}

#endif

}  // namespace detail

}  // namespace ashlar::cpu
