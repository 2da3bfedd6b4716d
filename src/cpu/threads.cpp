// parallel_for on OpenMP.
#include "cpu/threads.hpp"

#include <hwy/cache_control.h>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

namespace ashlar::cpu {

std::int64_t items_per_thread(std::int64_t elements, double flops) {
  constexpr double kElements = 16384;
  const auto least = static_cast<std::int64_t>(kElements / (flops > 1 ? flops : 1)) + 1;
  return elements <= 0 ? least : (least + elements - 1) / elements;
}

void detail::fence_streams() { hwy::FlushStream(); }

#ifdef ASHLAR_NO_OPENMP

int thread_count() { return 1; }

namespace detail {

void run_parallel(std::int64_t count, int, void* state,
                  void (*body)(void* state, std::int64_t begin, std::int64_t end, int thread)) {
  body(state, 0, count, 0);
}

}  // namespace detail

#else

int thread_count() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

namespace detail {

void run_parallel(std::int64_t count, int threads, void* state,
                  void (*body)(void* state, std::int64_t begin, std::int64_t end, int thread)) {
#pragma omp parallel num_threads(threads)
  {
    // OpenMP may grant fewer threads than requested, so the ranges follow the actual team size.
    // They differ by at most one item.
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t share = count / team;
    const std::int64_t extra = count % team;
    const std::int64_t begin = thread * share + (thread < extra ? thread : extra);
    const std::int64_t end = begin + share + (thread < extra ? 1 : 0);
    if (begin < end) body(state, begin, end, static_cast<int>(thread));
    fence_streams();
  }
}

}  // namespace detail

#endif

}  // namespace ashlar::cpu
