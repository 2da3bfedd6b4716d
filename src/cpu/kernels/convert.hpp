// Converts rows of tensor memory to and from rows of float or double.
#pragma once

#include <ashlar/dtype.hpp>
#include <cstdint>

namespace ashlar::cpu {

// `index` is the first element and `stride` the element stride, both in elements from `data` (bits
// for booleans, nibbles for 4-bit types). Complex types have no rows.
template <class T>
using LoadRow = void (*)(const void* data, std::int64_t index, std::int64_t stride,
                         std::int64_t count, T* destination);
// Rounds once; saturation and NaN as in store_element. Threads may store elements of the same byte
// concurrently.
template <class T>
using StoreRow = void (*)(const T* source, std::int64_t count, void* data, std::int64_t index,
                          std::int64_t stride);

// The best implementation for this CPU.
template <class T>
[[gnu::visibility("hidden")]] LoadRow<T> load_row(DType dtype);
template <class T>
[[gnu::visibility("hidden")]] StoreRow<T> store_row(DType dtype);

}  // namespace ashlar::cpu
