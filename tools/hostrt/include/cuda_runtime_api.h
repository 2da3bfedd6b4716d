/* The CUDA runtime API of the host runtime: one device, which is the host CPU. A CUDA program that
 * launches no kernels of its own compiles with these headers, and also runs with NVIDIA's library.
 * Functions that need a GPU are not declared. */
#ifndef ASHLAR_HOSTRT_CUDA_RUNTIME_API_H
#define ASHLAR_HOSTRT_CUDA_RUNTIME_API_H

#define CUDART_VERSION 13000

#include "driver_types.h"

#ifdef __cplusplus
#define ASHLAR_HOSTRT_DEFAULT(value) = value
extern "C" {
#else
#define ASHLAR_HOSTRT_DEFAULT(value)
#endif

/* Errors; the last one is stored per thread. */
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

/* Devices. */
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* wanted);
cudaError_t cudaSetValidDevices(int* devices, int count);
cudaError_t cudaGetDeviceFlags(unsigned int* flags);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text);
cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* Memory. */
cudaError_t cudaMalloc(void** pointer, size_t bytes);
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pointer, struct cudaExtent extent);
cudaError_t cudaMallocManaged(void** pointer, size_t bytes,
                              unsigned int flags ASHLAR_HOSTRT_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, size_t bytes);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void* pointer);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int* flags, void* host);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));

/* Memory in stream order; there is one pool. */
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void* value);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);

/* Copies and fills, complete when the call returns. */
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* copy);
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* copy,
                              cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemset(void* pointer, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes,
                            cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent);
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
                              cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));

/* Streams. All work runs synchronously in the call; work on a stream that is being captured is
 * recorded instead. */
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void* user_data, unsigned int flags);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer,
                                     size_t bytes ASHLAR_HOSTRT_DEFAULT(0),
                                     unsigned int flags ASHLAR_HOSTRT_DEFAULT(cudaMemAttachSingle));
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                     unsigned long long* id ASHLAR_HOSTRT_DEFAULT(0),
                                     cudaGraph_t* graph ASHLAR_HOSTRT_DEFAULT(0),
                                     const cudaGraphNode_t** dependencies ASHLAR_HOSTRT_DEFAULT(0),
                                     const cudaGraphEdgeData** edges ASHLAR_HOSTRT_DEFAULT(0),
                                     size_t* dependency_count ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode);

/* Graphs of captured work: copies, fills, host functions, and the executions of our libcudnn. */
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

/* Events; each stores the time at which it was recorded. */
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                     cudaStream_t stream ASHLAR_HOSTRT_DEFAULT(0),
                                     unsigned int flags ASHLAR_HOSTRT_DEFAULT(0));
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

#ifdef __cplusplus
}
#endif
#undef ASHLAR_HOSTRT_DEFAULT

#endif /* ASHLAR_HOSTRT_CUDA_RUNTIME_API_H */
