// The types that elements of attributes have: their size in the caller's array, and their values.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ashlar::cudnn {

// An enumeration that a caller passed, as a number: it may be none of the enumeration's values, and
// is looked at as an enumeration only after a check.
template <class E>
std::int64_t number_of(const E& value) {
  static_assert(sizeof(E) == sizeof(std::int32_t));
  std::int32_t number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

// "CUDNN_TYPE_INT64"; never null.
const char* element_type_name(std::int64_t type);

// Bytes of one element.
std::size_t element_size(std::int64_t type);

// Whether an integer is one of the values of an enumeration; true for types that are none.
bool is_value_of(std::int64_t type, std::int64_t value);

}  // namespace ashlar::cudnn
