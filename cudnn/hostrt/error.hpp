// How a call of the stand-in ends: with an error that the thread remembers, or without.
#pragma once

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

// What a call returns. An error becomes the thread's last one.
cudaError_t record_error(cudaError_t error);

// For a function that only a GPU could do: cudaErrorNotSupported, and the first time for each
// function a line on stderr that says so.
cudaError_t unsupported(const char* function);

// Hands a value out.
template <typename T>
cudaError_t return_value(T* out, const T& value) {
  if (out == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *out = value;
  return cudaSuccess;
}

// Sets to nothing what the caller wants to know at all.
template <typename... T>
void clear(T*... outputs) {
  ((outputs != nullptr ? void(*outputs = T{}) : void()), ...);
}

}  // namespace ashlar::hostrt
