/* The host runtime that replaces libcudart on machines without a GPU. Behaviour that NVIDIA's
 * library shares is tested with either library; misuse that NVIDIA's need not survive only with
 * ours. */
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

static void expect_error(cudaError_t got, cudaError_t expected, const char* call, int line) {
  if (got != expected) {
    fprintf(stderr, "%s:%d: %s: got %s, expected %s\n", __FILE__, line, call, cudaGetErrorName(got),
            cudaGetErrorName(expected));
    ++failures;
  }
}
#define DONE(call) expect_error((call), cudaSuccess, #call, __LINE__)
#define FAILS(error, call) expect_error((call), (error), #call, __LINE__)

static void test_device(void) {
  int count = 0;
  int device = -1;
  int value = 0;
  int version = 0;
  DONE(cudaGetDeviceCount(&count));
  CHECK(count >= 1);
  DONE(cudaSetDevice(0));
  DONE(cudaGetDevice(&device));
  CHECK(device == 0);
  FAILS(cudaErrorInvalidDevice, cudaSetDevice(count));
  FAILS(cudaErrorInvalidDevice, cudaSetDevice(-1));
  DONE(cudaRuntimeGetVersion(&version));
  CHECK(version / 1000 == 13);
  DONE(cudaDriverGetVersion(&version));
  CHECK(version >= 13000);

  struct cudaDeviceProp properties;
  DONE(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.major >= 7 && properties.warpSize == 32);
  CHECK(properties.totalGlobalMem > 1u << 20);
  DONE(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(value == properties.major);
  DONE(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == properties.multiProcessorCount && value > 0);
  FAILS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)(-3), 0));
  FAILS(cudaErrorInvalidDevice,
        cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, count));
  FAILS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, count));

  char bus[16];
  DONE(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  DONE(cudaDeviceGetByPCIBusId(&device, bus));
  CHECK(device == 0);
  DONE(cudaDeviceSynchronize());
}

static void test_errors(void) {
  CHECK(strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
  CHECK(strlen(cudaGetErrorString(cudaErrorMemoryAllocation)) > 0);
  CHECK(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code") == 0);
  (void)cudaGetLastError();
  FAILS(cudaErrorInvalidDevice, cudaSetDevice(-1));
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

static void test_memory(void) {
  void* memory = NULL;
  void* none = &memory;
  DONE(cudaMalloc(&memory, 1000));
  CHECK((size_t)memory % 256 == 0);
  DONE(cudaMalloc(&none, 0));
  CHECK(none == NULL);
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&none, (size_t)1 << 60));
  FAILS(cudaErrorInvalidValue, cudaMalloc(NULL, 4));

  struct cudaPointerAttributes attributes;
  DONE(cudaPointerGetAttributes(&attributes, (char*)memory + 999));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  DONE(cudaPointerGetAttributes(&attributes, &attributes));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);

  char out[1000];
  DONE(cudaMemset(memory, 7, 1000));
  DONE(cudaMemset((char*)memory + 10, 9, 5));
  DONE(cudaMemcpy(out, memory, 1000, cudaMemcpyDeviceToHost));
  CHECK(out[0] == 7 && out[10] == 9 && out[14] == 9 && out[15] == 7 && out[999] == 7);
  out[3] = 42;
  DONE(cudaMemcpyAsync(memory, out, 1000, cudaMemcpyHostToDevice, 0));
  DONE(cudaMemcpy((char*)memory + 500, memory, 100, cudaMemcpyDeviceToDevice));
  DONE(cudaMemcpyAsync(out, memory, 1000, cudaMemcpyDefault, cudaStreamPerThread));
  DONE(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(out[503] == 42 && out[510] == 9);
  FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(out, memory, 4, (enum cudaMemcpyKind)9));
  FAILS(cudaErrorInvalidValue, cudaMemcpy(NULL, memory, 4, cudaMemcpyDeviceToHost));
  DONE(cudaFree(memory));
  DONE(cudaFree(NULL));

  size_t available = 0;
  size_t total = 0;
  DONE(cudaMemGetInfo(&available, &total));
  CHECK(available > 0 && available <= total);
}

static void test_rows(void) {
  char host[4][6];
  char back[4][6];
  void* memory = NULL;
  size_t pitch = 0;
  for (int i = 0; i < 24; ++i) {
    host[i / 6][i % 6] = (char)i;
  }
  DONE(cudaMallocPitch(&memory, &pitch, 6, 4));
  CHECK(pitch >= 6);
  DONE(cudaMemcpy2D(memory, pitch, host, 6, 6, 4, cudaMemcpyHostToDevice));
  DONE(cudaMemset2D((char*)memory + pitch, pitch, -1, 2, 2));
  DONE(cudaMemcpy2DAsync(back, 6, memory, pitch, 6, 4, cudaMemcpyDeviceToHost, 0));
  DONE(cudaDeviceSynchronize());
  CHECK(back[0][0] == 0 && back[1][0] == -1 && back[2][1] == -1 && back[2][2] == 14);
  CHECK(back[3][0] == 18 && back[3][5] == 23);
  FAILS(cudaErrorInvalidPitchValue, cudaMemcpy2D(memory, 5, host, 6, 6, 4, cudaMemcpyHostToDevice));
  DONE(cudaFree(memory));

  struct cudaPitchedPtr volume;
  const struct cudaExtent extent = {6, 2, 2};
  DONE(cudaMalloc3D(&volume, extent));
  DONE(cudaMemset3D(volume, 3, extent));
  struct cudaMemcpy3DParms copy;
  memset(&copy, 0, sizeof copy);
  copy.srcPtr = volume;
  copy.dstPtr.ptr = back;
  copy.dstPtr.pitch = 6;
  copy.dstPtr.xsize = 6;
  copy.dstPtr.ysize = 2;
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  DONE(cudaMemcpy3D(&copy));
  CHECK(back[0][0] == 3 && back[3][5] == 3);
  DONE(cudaFree(volume.ptr));
}

static void test_host_memory(void) {
  void* pinned = NULL;
  void* mapped = NULL;
  void* managed = NULL;
  void* ordered = NULL;
  unsigned int flags = 0;
  DONE(cudaMallocHost(&pinned, 64));
  DONE(cudaHostAlloc(&mapped, 64, cudaHostAllocMapped | cudaHostAllocPortable));
  DONE(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal));
  DONE(cudaMallocAsync(&ordered, 64, 0));
  memset(pinned, 5, 64);
  memset(managed, 6, 64);
  DONE(cudaHostGetFlags(&flags, mapped));
  CHECK((flags & cudaHostAllocMapped) != 0);
  struct cudaPointerAttributes attributes;
  DONE(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost);
  DONE(cudaPointerGetAttributes(&attributes, managed));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  DONE(cudaMemcpyAsync(ordered, pinned, 64, cudaMemcpyHostToDevice, 0));
  DONE(cudaMemcpyAsync(managed, ordered, 64, cudaMemcpyDefault, 0));
  DONE(cudaDeviceSynchronize());
  CHECK(((char*)managed)[63] == 5);
  DONE(cudaFreeAsync(ordered, 0));
  DONE(cudaFree(managed));
  DONE(cudaFreeHost(mapped));
  DONE(cudaFreeHost(pinned));

  char* own = malloc(8192);
  DONE(cudaHostRegister(own, 8192, cudaHostRegisterDefault));
  FAILS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own, 8192, 0));
  DONE(cudaHostUnregister(own));
  FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
  free(own);
}

static void count_call(void* counter) { ++*(int*)counter; }

static void test_streams(void) {
  cudaStream_t stream = NULL;
  cudaStream_t urgent = NULL;
  cudaEvent_t start = NULL;
  cudaEvent_t end = NULL;
  int least = 0;
  int greatest = 0;
  int priority = 1;
  unsigned int flags = 7;
  int calls = 0;
  float milliseconds = -1;
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
  DONE(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  DONE(cudaStreamCreate(&stream));
  DONE(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
  DONE(cudaStreamGetPriority(urgent, &priority));
  CHECK(priority == greatest);
  DONE(cudaStreamGetFlags(urgent, &flags));
  CHECK(flags == cudaStreamNonBlocking);
  FAILS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 77));
  DONE(cudaStreamIsCapturing(stream, &capture));
  CHECK(capture == cudaStreamCaptureStatusNone);

  DONE(cudaEventCreate(&start));
  DONE(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
  DONE(cudaEventQuery(start));
  FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, end));
  DONE(cudaEventRecord(start, stream));
  DONE(cudaLaunchHostFunc(stream, count_call, &calls));
  DONE(cudaEventRecord(end, stream));
  DONE(cudaStreamWaitEvent(urgent, end, 0));
  DONE(cudaEventSynchronize(end));
  DONE(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 0 && milliseconds < 10000);
  DONE(cudaStreamSynchronize(stream));
  CHECK(calls == 1);
  DONE(cudaStreamQuery(urgent));
  DONE(cudaEventDestroy(start));
  DONE(cudaEventDestroy(end));
  DONE(cudaStreamDestroy(stream));
  DONE(cudaStreamDestroy(urgent));
}

/* Work of a captured stream runs at every launch of its graph. */
static void test_capture(void) {
  cudaStream_t stream = NULL;
  cudaStream_t other = NULL;
  cudaEvent_t event = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t executable = NULL;
  void* memory = NULL;
  char out[8] = {0};
  int calls = 0;
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  DONE(cudaStreamCreate(&stream));
  DONE(cudaStreamCreate(&other));
  DONE(cudaEventCreate(&event));
  DONE(cudaMalloc(&memory, 8));
  DONE(cudaMemset(memory, 1, 8));
  DONE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  DONE(cudaStreamIsCapturing(stream, &capture));
  CHECK(capture == cudaStreamCaptureStatusActive);
  DONE(cudaMemsetAsync(memory, 2, 4, stream));
  DONE(cudaEventRecord(event, stream));
  DONE(cudaStreamWaitEvent(other, event, 0));
  DONE(cudaLaunchHostFunc(other, count_call, &calls));
  DONE(cudaEventRecord(event, other));
  DONE(cudaStreamWaitEvent(stream, event, 0));
  DONE(cudaStreamEndCapture(stream, &graph));
  DONE(cudaStreamIsCapturing(other, &capture));
  CHECK(capture == cudaStreamCaptureStatusNone);
  DONE(cudaMemcpy(out, memory, 8, cudaMemcpyDeviceToHost));
  CHECK(out[0] == 1 && calls == 0);
  DONE(cudaGraphInstantiate(&executable, graph, 0));
  DONE(cudaGraphDestroy(graph));
  for (int launch = 1; launch <= 2; ++launch) {
    DONE(cudaGraphLaunch(executable, stream));
    DONE(cudaStreamSynchronize(stream));
    CHECK(calls == launch);
  }
  DONE(cudaMemcpy(out, memory, 8, cudaMemcpyDeviceToHost));
  CHECK(out[0] == 2 && out[3] == 2 && out[4] == 1);
  DONE(cudaGraphExecDestroy(executable));

  DONE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  FAILS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  FAILS(cudaErrorStreamCaptureUnsupported,
        cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed));
  DONE(cudaFree(memory));
  DONE(cudaEventDestroy(event));
  DONE(cudaStreamDestroy(other));
  DONE(cudaStreamDestroy(stream));
}

/* Invalid handles and ranges are rejected by lookup, without being dereferenced. */
static void test_misuse_of_hostrt(void) {
  cudaStream_t stream = NULL;
  cudaEvent_t event = NULL;
  cudaEvent_t timeless = NULL;
  void* memory = NULL;
  char host[16] = {0};
  unsigned long long id = 5;
  float milliseconds = 0;
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
  DONE(cudaStreamCreate(&stream));
  DONE(cudaStreamDestroy(stream));
  FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
  FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
  FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
  FAILS(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, NULL));
  DONE(cudaEventCreate(&event));
  DONE(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
  DONE(cudaEventRecord(event, NULL));
  DONE(cudaEventRecord(timeless, NULL));
  FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, event, timeless));
  FAILS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&timeless, cudaEventInterprocess));
  DONE(cudaEventDestroy(event));
  FAILS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(event));
  DONE(cudaStreamGetCaptureInfo(NULL, &capture, &id, NULL, NULL, NULL, NULL));
  CHECK(capture == cudaStreamCaptureStatusNone && id == 0);

  DONE(cudaMalloc(&memory, 16));
  FAILS(cudaErrorInvalidValue, cudaMemcpy(memory, host, 17, cudaMemcpyHostToDevice));
  FAILS(cudaErrorInvalidValue, cudaMemset((char*)memory + 8, 0, 9));
  DONE(cudaMemset(host, 3, 4)); /* the device may access pageable host memory */
  CHECK(host[3] == 3 && host[4] == 0);
  FAILS(cudaErrorInvalidValue, cudaFreeHost(memory));
  FAILS(cudaErrorInvalidValue, cudaFree(host));
  FAILS(cudaErrorInvalidValue, cudaFree((char*)memory + 4));
  DONE(cudaFree(memory));
  FAILS(cudaErrorInvalidValue, cudaFree(memory));
}

/* One program that uses both libraries. */
static void test_with_cudnn(void) {
  cudnnHandle_t handle = NULL;
  cudaStream_t stream = NULL;
  cudaStream_t back = NULL;
  SUCCEEDS(cudnnCreate(&handle));
  DONE(cudaStreamCreate(&stream));
  SUCCEEDS(cudnnSetStream(handle, stream));
  SUCCEEDS(cudnnGetStream(handle, &back));
  CHECK(back == stream);
  SUCCEEDS(cudnnDestroy(handle));
  DONE(cudaStreamDestroy(stream));
}

int main(void) {
  struct cudaDeviceProp properties;
  test_device();
  test_errors();
  test_memory();
  test_rows();
  test_host_memory();
  test_streams();
  test_capture();
  test_with_cudnn();
  DONE(cudaGetDeviceProperties(&properties, 0));
  if (strcmp(properties.name, "Ashlar host CPU") == 0) {
    test_misuse_of_hostrt();
  }
  return failures;
}
