// Checks of descriptors that are created first and set by a later call.
#pragma once

#include "core/objects.hpp"

namespace ashlar::cudnn {

// The descriptor that a parameter points to; throws Failure(BAD_PARAM) for one that was never set
// (T::is_set).
template <class T>
const T& set_object(T* descriptor, const char* parameter) {
  const T& fields = object(descriptor, parameter);
  if (!fields.is_set)
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got a {} that was never set, expected one that is set",
         parameter, T::kTypeName);
  return fields;
}

// Throws Failure(BAD_PARAM) unless the value lies in 0 to `last`.
template <class Enum>
Enum require_enum(Enum value, Enum last, const char* parameter) {
  const auto number = static_cast<unsigned>(value);
  if (number > static_cast<unsigned>(last))
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected 0 to {}", parameter, number,
         static_cast<unsigned>(last));
  return value;
}

}  // namespace ashlar::cudnn
