/* Handles, statuses, data types, logging, and the graph API: descriptors with attributes.
 *
 * A program describes tensors and operations by descriptors, collects them in an operation graph,
 * queries heuristics for engine configurations, finalizes an execution plan and executes it with a
 * variant pack of data pointers. */
#ifndef ASHLAR_CUDNN_GRAPH_H
#define ASHLAR_CUDNN_GRAPH_H

#include "cudnn_cuda_types.h"
#include "cudnn_version.h"

/* Empty on the systems that this library supports; programs may use it. */
#ifndef CUDNNWINAPI
#define CUDNNWINAPI
#endif

/* The largest rank of a tensor. */
#define CUDNN_DIM_MAX 8

#include "cudnn_attributes.h"
#include "cudnn_backend_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle is used by one thread at a time and holds the stream that work is submitted to. */
typedef struct cudnnContext* cudnnHandle_t;

/* The status of every call. The thousands digit is the category; cudnnGetLastErrorString() has the
 * message. */
typedef enum {
  CUDNN_STATUS_SUCCESS = 0,
  /* The library, its version or its state. */
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
  CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH = 1003,
  CUDNN_STATUS_DEPRECATED = 1004,
  CUDNN_STATUS_LICENSE_ERROR = 1005,
  CUDNN_STATUS_RUNTIME_IN_PROGRESS = 1006,
  CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 1007,
  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
  /* Errors of the caller. */
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_INVALID_VALUE CUDNN_DEPRECATED_ENUM = 2001,
  CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
  CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
  CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
  CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
  CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
  CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH = 2007,
  CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
  CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
  CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
  CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH = 2011,
  CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE = 2012,
  /* Unsupported requests. */
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
  CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
  CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
  CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
  CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
  CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
  CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
  CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT = 3010,
  CUDNN_STATUS_NOT_SUPPORTED_PADDING = 3011,
  CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM = 3012,
  CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API = 3013,
  CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE = 3014,
  /* Failures of the library before execution. */
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4001,
  CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE = 4002,
  CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
  CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM = 4005,
  CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED = 4006,
  /* Failures of the device or one of its libraries. */
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
  CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001,
  CUDNN_STATUS_EXECUTION_FAILED_CUBLAS = 5002,
  CUDNN_STATUS_EXECUTION_FAILED_CUDART = 5003,
  CUDNN_STATUS_EXECUTION_FAILED_CURAND = 5004,
  /* Legacy names. */
  CUDNN_STATUS_VERSION_MISMATCH CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
  CUDNN_STATUS_ARCH_MISMATCH CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
  CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING CUDNN_DEPRECATED_ENUM =
      CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
  CUDNN_STATUS_ALLOC_FAILED CUDNN_DEPRECATED_ENUM =
      CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
  CUDNN_STATUS_MAPPING_ERROR CUDNN_DEPRECATED_ENUM =
      CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED,
} cudnnStatus_t;

#define CUDNN_STATUS_CATEGORY(status) ((status) / 1000 * 1000)
#define CUDNN_STATUS_SPECIFIC_ERROR(status) ((status) % 1000)
#define CUDNN_STATUS_FULL_ERROR_CODE(category, specific) ((cudnnStatus_t)((category) + (specific)))

/* Version numbers: of this library, of the newest supported device and of the CUDA runtime. */
size_t cudnnGetVersion(void);
size_t cudnnGetMaxDeviceVersion(void);
size_t cudnnGetCudartVersion(void);
cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value);
cudnnStatus_t cudnnGraphVersionCheck(void);

/* The name of a status (never null), and the last error message of this thread, truncated to
 * `capacity` bytes including the terminating zero. */
const char* cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char* message, size_t capacity);

/* A handle uses the current device, or the CPU if there is no GPU. */
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream);

/* Query modes of cudnnQueryRuntimeError(): the raw code, non-blocking, or blocking. */
typedef enum {
  CUDNN_ERRQUERY_RAWCODE = 0,
  CUDNN_ERRQUERY_NONBLOCKING = 1,
  CUDNN_ERRQUERY_BLOCKING = 2,
} cudnnErrQueryMode_t;

typedef struct cudnnRuntimeTag_t cudnnRuntimeTag_t;

/* An error that a kernel reported asynchronously. */
CUDNN_DEPRECATED cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* pending,
                                                      cudnnErrQueryMode_t mode,
                                                      cudnnRuntimeTag_t* tag);

/* Levels of the log. */
typedef enum {
  CUDNN_SEV_FATAL = 0,
  CUDNN_SEV_ERROR = 1,
  CUDNN_SEV_WARNING = 2,
  CUDNN_SEV_INFO = 3,
} cudnnSeverity_t;

/* Bits of the callback's mask. */
#define CUDNN_SEV_ERROR_EN (1U << CUDNN_SEV_ERROR)
#define CUDNN_SEV_WARNING_EN (1U << CUDNN_SEV_WARNING)
#define CUDNN_SEV_INFO_EN (1U << CUDNN_SEV_INFO)

/* The source and time of a log line: seconds and microseconds of the clock, seconds since the
 * start. */
typedef struct cudnnDebugStruct {
  unsigned cudnn_version;
  cudnnStatus_t cudnnStatus;
  unsigned time_sec;
  unsigned time_usec;
  unsigned time_delta;
  cudnnHandle_t handle;
  cudaStream_t stream;
  unsigned long long pid;
  unsigned long long tid;
  int cudaDeviceId;
  int reserved[15];
} cudnnDebug_t;

/* Receives log lines; `message` holds zero-terminated lines, followed by one more zero. */
typedef void (*cudnnCallback_t)(cudnnSeverity_t severity, void* user_data, const cudnnDebug_t* who,
                                const char* message);

/* The callback receives the levels of the mask, for the whole process. */
cudnnStatus_t cudnnSetCallback(unsigned mask, void* user_data, cudnnCallback_t callback);
cudnnStatus_t cudnnGetCallback(unsigned* mask, void** user_data, cudnnCallback_t* callback);

/* A descriptor of any type; the caller owns it and destroys it. */
typedef void* cudnnBackendDescriptor_t;

/* A descriptor is created empty, filled with attributes, and made immutable by finalize. Initialize
 * makes it empty again. */
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor);
CUDNN_DEPRECATED cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);

/* Set copies `count` elements of the type. Get writes at most `capacity` elements and returns the
 * total number in `count` (may be null); with null elements it only counts. Descriptors are read
 * into descriptors that the caller created. */
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements);
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t capacity,
                                       int64_t* count, void* elements);

/* Execute a plan on the handle's stream, add its work to an empty CUDA graph, or update such a
 * graph with the pointers of another variant pack. */
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variants);
cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                            cudnnBackendDescriptor_t variants, cudaGraph_t graph);
cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                          cudnnBackendDescriptor_t variants, cudaGraph_t graph);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_GRAPH_H */
