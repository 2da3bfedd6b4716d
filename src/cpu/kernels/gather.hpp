// Weighted sums of elements picked by index: what interpolation and grid sampling are made of.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ashlar::cpu {

// As wide as T, so that a vector of indices fits a vector of elements.
template <class T>
using GatherIndex = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// y[i] = sum over k < taps of weight[k][i] * x[index[k][i]], for i < n. Rows of index and weight
// are `stride` apart. Elements of weight 0 do not count, whatever they hold; their index must still
// be inside x.
template <class T>
using GatherSum = void (*)(const T* x, const GatherIndex<T>* index, const T* weight,
                           std::int64_t taps, std::int64_t stride, std::int64_t n, T* y);

// The best for this processor.
template <class T>
GatherSum<T> gather_sum();

}  // namespace ashlar::cpu
