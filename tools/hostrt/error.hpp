// Error reporting of the host runtime: return values and the per-thread last error.
#pragma once

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

// Returns `error`; stores it as the thread's last error unless it is cudaSuccess or
// cudaErrorNotReady.
cudaError_t record_error(cudaError_t error);

// For a function that needs a GPU: returns cudaErrorNotSupported, and prints a line to stderr the
// first time for each function.
cudaError_t unsupported(const char* function);

// Writes an output parameter; cudaErrorInvalidValue for null.
template <typename T>
cudaError_t return_value(T* out, const T& value) {
  if (out == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *out = value;
  return cudaSuccess;
}

// Zeroes the output parameters that are not null.
template <typename... T>
void clear(T*... outputs) {
  ((outputs != nullptr ? void(*outputs = T{}) : void()), ...);
}

}  // namespace ashlar::hostrt
