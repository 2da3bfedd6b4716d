// One step of the CTC recursion over states, in log space.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y[s] = log(exp(x[s]) + exp(x[s - 1]) + exp(x[s - 2])) for s < n, without the last term where
// skip[s] != 0; reads x[-1] and x[-2]. -inf is an absent term; NaN and +inf give NaN.
template <class T>
using LogSum = void (*)(const T* x, const T* skip, std::int64_t n, T* y);

// The best implementation for this CPU.
template <class T>
[[gnu::visibility("hidden")]] LogSum<T> log_sum();

}  // namespace ashlar::cpu
