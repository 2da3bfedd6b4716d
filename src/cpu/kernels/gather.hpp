// Weighted sums of gathered elements, for interpolation and grid sampling.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// As wide as T, so that index and element vectors have the same number of lanes.
template <class T>
using GatherIndex = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// y[i] = sum over k < taps of weight[k][i] * x[index[k][i]], for i < n. Rows of index and weight
// are `stride` apart. Elements of weight 0 contribute nothing, even NaN; their index must be valid.
template <class T>
using GatherSum = void (*)(const T* x, const GatherIndex<T>* index, const T* weight,
                           std::int64_t taps, std::int64_t stride, std::int64_t n, T* y);

// The best implementation for this CPU.
template <class T>
[[gnu::visibility("hidden")]] GatherSum<T> gather_sum();

}  // namespace ashlar::cpu
