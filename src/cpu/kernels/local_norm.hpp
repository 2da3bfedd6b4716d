// What local normalisation divides by, on contiguous rows.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// s = k + factor * sums[i]; power[i] = s^-beta; over_s[i] = s^(-beta - 1), unless it is null.
template <class T>
using LocalNormRow = void (*)(const T* sums, T k, T factor, T beta, std::int64_t n, T* power,
                              T* over_s);

// The best for this processor.
template <class T>
LocalNormRow<T> local_norm_row();

}  // namespace ashlar::cpu
