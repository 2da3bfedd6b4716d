#include "error.hpp"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace {

struct Entry {
  cudaError_t error;
  const char* name;
  const char* meaning;
};

#define HOSTRT_ERROR(name, meaning) \
  Entry { name, #name, meaning }

constexpr Entry kErrors[] = {
    HOSTRT_ERROR(cudaSuccess, "no error"),
    HOSTRT_ERROR(cudaErrorInvalidValue, "invalid argument"),
    HOSTRT_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    HOSTRT_ERROR(cudaErrorInitializationError, "the runtime could not start"),
    HOSTRT_ERROR(cudaErrorCudartUnloading, "the program is ending"),
    HOSTRT_ERROR(cudaErrorInvalidConfiguration, "invalid launch configuration"),
    HOSTRT_ERROR(cudaErrorInvalidPitchValue, "invalid pitch: less than the width of a row"),
    HOSTRT_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    HOSTRT_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    HOSTRT_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    HOSTRT_ERROR(cudaErrorInvalidMemcpyDirection, "invalid direction of a copy"),
    HOSTRT_ERROR(cudaErrorInsufficientDriver, "the driver is older than the runtime needs"),
    HOSTRT_ERROR(cudaErrorDevicesUnavailable, "all devices are busy or unavailable"),
    HOSTRT_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    HOSTRT_ERROR(cudaErrorNoDevice, "no device was found"),
    HOSTRT_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    HOSTRT_ERROR(cudaErrorInvalidKernelImage, "the kernel image is invalid"),
    HOSTRT_ERROR(cudaErrorDeviceUninitialized, "the device has no context yet"),
    HOSTRT_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for the device"),
    HOSTRT_ERROR(cudaErrorECCUncorrectable, "uncorrectable memory error"),
    HOSTRT_ERROR(cudaErrorUnsupportedLimit, "the device does not support this limit"),
    HOSTRT_ERROR(cudaErrorPeerAccessUnsupported, "no peer access between these devices"),
    HOSTRT_ERROR(cudaErrorInvalidPtx, "PTX could not be compiled"),
    HOSTRT_ERROR(cudaErrorFileNotFound, "file not found"),
    HOSTRT_ERROR(cudaErrorSharedObjectSymbolNotFound, "a symbol of a shared library was not found"),
    HOSTRT_ERROR(cudaErrorSharedObjectInitFailed, "a shared library could not be loaded"),
    HOSTRT_ERROR(cudaErrorOperatingSystem, "an operating system call failed"),
    HOSTRT_ERROR(cudaErrorInvalidResourceHandle, "invalid stream, event or other handle"),
    HOSTRT_ERROR(cudaErrorIllegalState, "a required resource is not in a valid state"),
    HOSTRT_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    HOSTRT_ERROR(cudaErrorNotReady, "work is not finished yet"),
    HOSTRT_ERROR(cudaErrorIllegalAddress, "a kernel accessed an illegal address"),
    HOSTRT_ERROR(cudaErrorLaunchOutOfResources, "a launch requested too many resources"),
    HOSTRT_ERROR(cudaErrorLaunchTimeout, "a kernel ran too long"),
    HOSTRT_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is enabled already"),
    HOSTRT_ERROR(cudaErrorPeerAccessNotEnabled, "peer access is not enabled"),
    HOSTRT_ERROR(cudaErrorSetOnActiveProcess, "cannot be set once the device is in use"),
    HOSTRT_ERROR(cudaErrorContextIsDestroyed, "the context is destroyed"),
    HOSTRT_ERROR(cudaErrorAssert, "an assertion failed in a kernel"),
    HOSTRT_ERROR(cudaErrorHostMemoryAlreadyRegistered, "host memory is registered already"),
    HOSTRT_ERROR(cudaErrorHostMemoryNotRegistered, "host memory is not registered"),
    HOSTRT_ERROR(cudaErrorIllegalInstruction, "a kernel executed an illegal instruction"),
    HOSTRT_ERROR(cudaErrorMisalignedAddress, "a kernel accessed a misaligned address"),
    HOSTRT_ERROR(cudaErrorLaunchFailure, "a kernel failed"),
    HOSTRT_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    HOSTRT_ERROR(cudaErrorNotSupported, "operation not supported: it needs a GPU"),
    HOSTRT_ERROR(cudaErrorSystemNotReady, "the system is not ready for CUDA"),
    HOSTRT_ERROR(cudaErrorSystemDriverMismatch,
                 "the versions of the CUDA driver and the display driver do not match"),
    HOSTRT_ERROR(cudaErrorStreamCaptureUnsupported, "not permitted while a stream is captured"),
    HOSTRT_ERROR(cudaErrorStreamCaptureInvalidated, "an earlier error ended the capture"),
    HOSTRT_ERROR(cudaErrorStreamCaptureUnmatched, "the capture was not begun in this stream"),
    HOSTRT_ERROR(cudaErrorTimeout, "wait timed out"),
    HOSTRT_ERROR(cudaErrorUnknown, "unknown error"),
};

const Entry* entry(cudaError_t error) {
  for (const Entry& candidate : kErrors) {
    if (candidate.error == error) {
      return &candidate;
    }
  }
  return nullptr;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

namespace ashlar::hostrt {

cudaError_t record_error(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    last_error = error;
  }
  return error;
}

cudaError_t unsupported(const char* function) {
  static std::mutex mutex;
  static std::set<std::string> reported;
  const std::lock_guard lock(mutex);
  if (reported.insert(function).second) {
    std::fprintf(stderr,
                 "ashlar libcudart: %s needs a GPU; this library replaces the CUDA runtime "
                 "on machines without one\n",
                 function);
  }
  return record_error(cudaErrorNotSupported);
}

}  // namespace ashlar::hostrt

const char* cudaGetErrorName(cudaError_t error) {
  const Entry* found = entry(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Entry* found = entry(error);
  return found == nullptr ? "unrecognized error code" : found->meaning;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }
