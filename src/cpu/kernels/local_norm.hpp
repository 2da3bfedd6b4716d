// The power s^-beta of local response normalisation, on contiguous rows.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// s = k + factor * sums[i]; power[i] = s^-beta; over_s[i] = s^(-beta - 1), unless over_s is null.
template <class T>
using LocalNormRow = void (*)(const T* sums, T k, T factor, T beta, std::int64_t n, T* power,
                              T* over_s);

// The best implementation for this CPU.
template <class T>
[[gnu::visibility("hidden")]] LocalNormRow<T> local_norm_row();

}  // namespace ashlar::cpu
