// One step of a recursion over states in log space: what CTC is made of.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y[s] = log(exp(x[s]) + exp(x[s - 1]) + exp(x[s - 2])) for s < n, without the last term where
// skip[s] is not 0; x[-1] and x[-2] are read. -inf is an absent term; NaN and +inf give NaN.
template <class T>
using LogSum = void (*)(const T* x, const T* skip, std::int64_t n, T* y);

// The best for this processor.
template <class T>
LogSum<T> log_sum();

}  // namespace ashlar::cpu
