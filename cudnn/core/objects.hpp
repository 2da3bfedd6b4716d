// What a program holds by pointer: handles and descriptors. Each is listed while it lives, so that
// a null, foreign or destroyed one is an answer instead of a crash.
#pragma once

#include <memory>
#include <utility>

#include "core/failure.hpp"

namespace ashlar::cudnn {

// `type` is the T::kTypeName of the object's struct.
void enlist(const void* object, const char* type);
bool is_listed(const void* object, const char* type);
bool strike(const void* object, const char* type);  // false when it was not listed

// Makes a new T and puts it where the caller asked.
template <class T, class... Args>
T& create_object(T** place, const char* parameter, Args&&... args) {
  required(place, parameter);
  auto object = std::make_unique<T>(std::forward<Args>(args)...);
  enlist(object.get(), T::kTypeName);
  *place = object.release();
  return **place;
}

// The object a parameter points to.
template <class T>
T& object(T* pointer, const char* parameter) {
  required(pointer, parameter);
  if (!is_listed(pointer, T::kTypeName))
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got a pointer that is no {}, or one that was destroyed",
         parameter, T::kTypeName);
  return *pointer;
}
template <class T>
const T& object(const T* pointer, const char* parameter) {
  return object(const_cast<T*>(pointer), parameter);
}

// Null is ignored, as free() does.
template <class T>
void destroy_object(T* pointer, const char* parameter) {
  if (pointer == nullptr) return;
  if (!strike(pointer, T::kTypeName))
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got a pointer that is no {}, or one destroyed before",
         parameter, T::kTypeName);
  delete pointer;
}

}  // namespace ashlar::cudnn
