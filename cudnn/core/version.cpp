// Version queries. This one library replaces all of NVIDIA's sub-libraries, so the checks for mixed
// versions always pass.
#include <cudnn.h>

#include <ashlar/memory.hpp>

#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"

using namespace ashlar::cudnn;

extern "C" {
// `ashlar doctor` looks for this symbol to tell this library from NVIDIA's.
extern const int ashlar_cudnn_marker;
const int ashlar_cudnn_marker = 1;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }
size_t cudnnGetMaxDeviceVersion() { return CUDNN_MAX_DEVICE_VERSION; }
// The runtime that NVIDIA's 9.19 for CUDA 13 was built with: clients compare its major number.
size_t cudnnGetCudartVersion() { return 13000; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  return guarded(__func__, [&] {
    required(value, "value");
    switch (type) {
      case MAJOR_VERSION: *value = CUDNN_MAJOR; return;
      case MINOR_VERSION: *value = CUDNN_MINOR; return;
      case PATCH_LEVEL: *value = CUDNN_PATCHLEVEL; return;
    }
    fail(CUDNN_STATUS_INVALID_VALUE,
         "type: got {}, expected MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL",
         static_cast<int>(type));
  });
}

cudnnStatus_t cudnnGraphVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck() { return CUDNN_STATUS_SUCCESS; }

// Only computations of cuda.host fail after the call that enqueued them. A blocking query waits for
// the handle's stream and reports such a failure; so does the next call that uses the engine.
cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* pending,
                                     cudnnErrQueryMode_t mode, cudnnRuntimeTag_t*) {
  return guarded(__func__, [&] {
    const auto& context = object(handle, "handle");
    *required(pending, "pending") = CUDNN_STATUS_SUCCESS;
    if (mode != CUDNN_ERRQUERY_BLOCKING) return;
    try {
      context.device.synchronize(context.stream);
    } catch (const ashlar::Error& error) {
      *pending = report("cudnnQueryRuntimeError", CUDNN_STATUS_EXECUTION_FAILED, error.what());
    }
  });
}
