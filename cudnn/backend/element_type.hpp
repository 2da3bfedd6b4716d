// cudnnBackendAttributeType_t: names, element sizes in the caller's array, and valid values.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ashlar::cudnn {

// The integer behind an enumeration that a C caller passed. Reading an out-of-range value as the
// enumeration is undefined behaviour in C++, so it is checked as an integer first.
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

// Whether `value` is an enumerator of `type`; true for types that are not enumerations.
bool is_value_of(std::int64_t type, std::int64_t value);

}  // namespace ashlar::cudnn
