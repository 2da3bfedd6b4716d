// Every exported function that returns a status runs inside answer(): nothing is thrown across the
// C boundary, the last error is kept, the log told.
#pragma once

#include <new>

#include "core/failure.hpp"
#include "core/log.hpp"

namespace ashlar::cudnn {

// Keeps the sentence for cudnnGetLastErrorString() of this thread and logs it; returns the status.
cudnnStatus_t report(const char* function, cudnnStatus_t status, const char* sentence) noexcept;

template <class Body>
cudnnStatus_t answer(const char* function, Body&& body) noexcept {
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
                  "the host has no memory left");
  } catch (const std::exception& other) {
    return report(function, CUDNN_STATUS_INTERNAL_ERROR, other.what());
  } catch (...) {
    return report(function, CUDNN_STATUS_INTERNAL_ERROR, "an unknown error");
  }
}

// The status of a null pointer where NVIDIA's older calls are asked: they know no finer one.
constexpr cudnnStatus_t coarse(cudnnStatus_t status) {
  return status == CUDNN_STATUS_BAD_PARAM_NULL_POINTER ? CUDNN_STATUS_BAD_PARAM : status;
}

// For the older calls, whose programs compare with CUDNN_STATUS_BAD_PARAM.
template <class Body>
cudnnStatus_t answer_older(const char* function, Body&& body) noexcept {
  return answer(function, [&] {
    try {
      body();
    } catch (const Failure& failure) {
      throw Failure(coarse(failure.status()), failure.what());
    }
  });
}

}  // namespace ashlar::cudnn
