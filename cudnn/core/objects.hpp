// Registry of live handles and descriptors. A null, foreign or destroyed pointer is found by lookup
// and returns a status instead of crashing.
#pragma once

#include <memory>
#include <utility>

#include "core/failure.hpp"

namespace ashlar::cudnn {

// `type` is the T::kTypeName of the object's struct.
void register_object(const void* object, const char* type);
bool is_registered(const void* object, const char* type);
bool unregister_object(const void* object, const char* type);  // false when it was not registered

// Creates and registers a T and stores its pointer in `*slot`.
template <class T, class... Args>
T& create_object(T** slot, const char* parameter, Args&&... args) {
  required(slot, parameter);
  auto object = std::make_unique<T>(std::forward<Args>(args)...);
  register_object(object.get(), T::kTypeName);
  *slot = object.release();
  return **slot;
}

// The live object that `pointer` names; throws Failure otherwise.
template <class T>
T& object(T* pointer, const char* parameter) {
  required(pointer, parameter);
  if (!is_registered(pointer, T::kTypeName))
    fail(CUDNN_STATUS_BAD_PARAM,
         "{}: got a pointer that is not a live {}, expected one that was created and not destroyed",
         parameter, T::kTypeName);
  return *pointer;
}
template <class T>
const T& object(const T* pointer, const char* parameter) {
  return object(const_cast<T*>(pointer), parameter);
}

// Ignores null, as free() does.
template <class T>
void destroy_object(T* pointer, const char* parameter) {
  if (pointer == nullptr) return;
  if (!unregister_object(pointer, T::kTypeName))
    fail(CUDNN_STATUS_BAD_PARAM,
         "{}: got a pointer that is not a live {}, expected one that was created and not destroyed",
         parameter, T::kTypeName);
  delete pointer;
}

}  // namespace ashlar::cudnn
