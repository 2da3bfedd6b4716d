// Rows of tensor memory <-> rows of float or double.
#pragma once

#include <ashlar/dtype.hpp>
#include <cstdint>

namespace ashlar::cpu {

// `index` is the first element, `stride` the distance between elements, both in elements (bits for
// booleans, halves of bytes for 4-bit types) from `data`. Complex types have no rows.
template <class T>
using LoadRow = void (*)(const void* data, std::int64_t index, std::int64_t stride,
                         std::int64_t count, T* destination);
// Rounds once, saturates and treats NaN as store_element does. Elements that share a byte may be
// stored from several threads at once.
template <class T>
using StoreRow = void (*)(const T* source, std::int64_t count, void* data, std::int64_t index,
                          std::int64_t stride);

// The best for this processor.
template <class T>
LoadRow<T> load_row(DType dtype);
template <class T>
StoreRow<T> store_row(DType dtype);

}  // namespace ashlar::cpu
