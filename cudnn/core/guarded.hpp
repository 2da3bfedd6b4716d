// guarded(): the body of every exported function that returns a status. It turns exceptions into
// statuses, so that none crosses the C boundary, stores the message for cudnnGetLastErrorString()
// and writes the log.
#pragma once

#include <new>

#include "core/failure.hpp"
#include "core/log.hpp"

namespace ashlar::cudnn {

// Stores the message for cudnnGetLastErrorString() of this thread and logs it; returns `status`.
cudnnStatus_t report(const char* function, cudnnStatus_t status, const char* sentence) noexcept;

template <class Body>
cudnnStatus_t guarded(const char* function, Body&& body) noexcept {
  log_call(function);
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Failure& failure) {
    return report(function, failure.status(), failure.what());
  } catch (const Error& error) {
    return report(function, status_of(error), error.what());
  } catch (const std::bad_alloc&) {
    return report(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                  "host memory allocation failed");
  } catch (const std::exception& other) {
    return report(function, CUDNN_STATUS_INTERNAL_ERROR, other.what());
  } catch (...) {
    return report(function, CUDNN_STATUS_INTERNAL_ERROR, "an unknown error");
  }
}

// Legacy calls report a null pointer as CUDNN_STATUS_BAD_PARAM, as NVIDIA's library does.
constexpr cudnnStatus_t legacy_status(cudnnStatus_t status) {
  return status == CUDNN_STATUS_BAD_PARAM_NULL_POINTER ? CUDNN_STATUS_BAD_PARAM : status;
}

// For the legacy API, whose clients compare with CUDNN_STATUS_BAD_PARAM.
template <class Body>
cudnnStatus_t guarded_legacy(const char* function, Body&& body) noexcept {
  return guarded(function, [&] {
    try {
      body();
    } catch (const Failure& failure) {
      throw Failure(legacy_status(failure.status()), failure.what());
    }
  });
}

}  // namespace ashlar::cudnn
