// Functions that need a GPU: kernels, explicitly built graphs, texture arrays, memory shared
// between processes. They are exported so that programs which contain the calls load; each prints
// its name and returns cudaErrorNotSupported.

#include "error.hpp"

// Arguments are not declared because they are not read: in this platform's C calling convention the
// caller cleans them up.
#define UNSUPPORTED(name)            \
  extern "C" cudaError_t name(void); \
  extern "C" cudaError_t name(void) { return ashlar::hostrt::unsupported(#name); }

UNSUPPORTED(cudaArrayGetInfo)
UNSUPPORTED(cudaArrayGetMemoryRequirements)
UNSUPPORTED(cudaCtxResetPersistingL2Cache)
UNSUPPORTED(cudaDeviceDisablePeerAccess)
UNSUPPORTED(cudaDeviceEnablePeerAccess)
UNSUPPORTED(cudaDeviceFlushGPUDirectRDMAWrites)
UNSUPPORTED(cudaDeviceGetCacheConfig)
UNSUPPORTED(cudaDeviceGetGraphMemAttribute)
UNSUPPORTED(cudaDeviceGetHostAtomicCapabilities)
UNSUPPORTED(cudaDeviceGetP2PAtomicCapabilities)
UNSUPPORTED(cudaDeviceGetP2PAttribute)
UNSUPPORTED(cudaDeviceGetSharedMemConfig)
UNSUPPORTED(cudaDeviceGraphMemTrim)
UNSUPPORTED(cudaDeviceSetCacheConfig)
UNSUPPORTED(cudaDeviceSetGraphMemAttribute)
UNSUPPORTED(cudaDeviceSetSharedMemConfig)
UNSUPPORTED(cudaFreeArray)
UNSUPPORTED(cudaFuncGetAttributes)
UNSUPPORTED(cudaFuncGetName)
UNSUPPORTED(cudaFuncGetParamInfo)
UNSUPPORTED(cudaFuncSetAttribute)
UNSUPPORTED(cudaFuncSetCacheConfig)
UNSUPPORTED(cudaFuncSetSharedMemConfig)
UNSUPPORTED(cudaGetChannelDesc)
UNSUPPORTED(cudaGetExportTable)
UNSUPPORTED(cudaGetFuncBySymbol)
UNSUPPORTED(cudaGetKernel)
UNSUPPORTED(cudaGetSymbolAddress)
UNSUPPORTED(cudaGetSymbolSize)
UNSUPPORTED(cudaGraphAddChildGraphNode)
UNSUPPORTED(cudaGraphAddDependencies)
UNSUPPORTED(cudaGraphAddEmptyNode)
UNSUPPORTED(cudaGraphAddEventRecordNode)
UNSUPPORTED(cudaGraphAddEventWaitNode)
UNSUPPORTED(cudaGraphAddHostNode)
UNSUPPORTED(cudaGraphAddKernelNode)
UNSUPPORTED(cudaGraphAddMemAllocNode)
UNSUPPORTED(cudaGraphAddMemFreeNode)
UNSUPPORTED(cudaGraphAddMemcpyNode)
UNSUPPORTED(cudaGraphAddMemcpyNode1D)
UNSUPPORTED(cudaGraphAddMemcpyNodeFromSymbol)
UNSUPPORTED(cudaGraphAddMemcpyNodeToSymbol)
UNSUPPORTED(cudaGraphAddMemsetNode)
UNSUPPORTED(cudaGraphAddNode)
UNSUPPORTED(cudaGraphChildGraphNodeGetGraph)
UNSUPPORTED(cudaGraphClone)
UNSUPPORTED(cudaGraphConditionalHandleCreate)
UNSUPPORTED(cudaGraphDebugDotPrint)
UNSUPPORTED(cudaGraphDestroyNode)
UNSUPPORTED(cudaGraphEventRecordNodeGetEvent)
UNSUPPORTED(cudaGraphEventRecordNodeSetEvent)
UNSUPPORTED(cudaGraphEventWaitNodeGetEvent)
UNSUPPORTED(cudaGraphEventWaitNodeSetEvent)
UNSUPPORTED(cudaGraphExecChildGraphNodeSetParams)
UNSUPPORTED(cudaGraphExecEventRecordNodeSetEvent)
UNSUPPORTED(cudaGraphExecEventWaitNodeSetEvent)
UNSUPPORTED(cudaGraphExecGetFlags)
UNSUPPORTED(cudaGraphExecHostNodeSetParams)
UNSUPPORTED(cudaGraphExecKernelNodeSetParams)
UNSUPPORTED(cudaGraphExecMemcpyNodeSetParams)
UNSUPPORTED(cudaGraphExecMemcpyNodeSetParams1D)
UNSUPPORTED(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
UNSUPPORTED(cudaGraphExecMemcpyNodeSetParamsToSymbol)
UNSUPPORTED(cudaGraphExecMemsetNodeSetParams)
UNSUPPORTED(cudaGraphExecNodeSetParams)
UNSUPPORTED(cudaGraphExecUpdate)
UNSUPPORTED(cudaGraphGetEdges)
UNSUPPORTED(cudaGraphGetRootNodes)
UNSUPPORTED(cudaGraphHostNodeGetParams)
UNSUPPORTED(cudaGraphHostNodeSetParams)
UNSUPPORTED(cudaGraphInstantiateWithParams)
UNSUPPORTED(cudaGraphKernelNodeCopyAttributes)
UNSUPPORTED(cudaGraphKernelNodeGetAttribute)
UNSUPPORTED(cudaGraphKernelNodeGetParams)
UNSUPPORTED(cudaGraphKernelNodeSetAttribute)
UNSUPPORTED(cudaGraphKernelNodeSetParams)
UNSUPPORTED(cudaGraphMemAllocNodeGetParams)
UNSUPPORTED(cudaGraphMemFreeNodeGetParams)
UNSUPPORTED(cudaGraphMemcpyNodeGetParams)
UNSUPPORTED(cudaGraphMemcpyNodeSetParams)
UNSUPPORTED(cudaGraphMemcpyNodeSetParams1D)
UNSUPPORTED(cudaGraphMemcpyNodeSetParamsFromSymbol)
UNSUPPORTED(cudaGraphMemcpyNodeSetParamsToSymbol)
UNSUPPORTED(cudaGraphMemsetNodeGetParams)
UNSUPPORTED(cudaGraphMemsetNodeSetParams)
UNSUPPORTED(cudaGraphNodeFindInClone)
UNSUPPORTED(cudaGraphNodeGetDependencies)
UNSUPPORTED(cudaGraphNodeGetDependentNodes)
UNSUPPORTED(cudaGraphNodeGetEnabled)
UNSUPPORTED(cudaGraphNodeGetType)
UNSUPPORTED(cudaGraphNodeSetEnabled)
UNSUPPORTED(cudaGraphNodeSetParams)
UNSUPPORTED(cudaGraphReleaseUserObject)
UNSUPPORTED(cudaGraphRemoveDependencies)
UNSUPPORTED(cudaGraphRetainUserObject)
UNSUPPORTED(cudaIpcCloseMemHandle)
UNSUPPORTED(cudaIpcGetEventHandle)
UNSUPPORTED(cudaIpcGetMemHandle)
UNSUPPORTED(cudaIpcOpenEventHandle)
UNSUPPORTED(cudaIpcOpenMemHandle)
UNSUPPORTED(cudaKernelSetAttributeForDevice)
UNSUPPORTED(cudaLaunchCooperativeKernel)
UNSUPPORTED(cudaLaunchKernel)
UNSUPPORTED(cudaLaunchKernelExC)
UNSUPPORTED(cudaLibraryEnumerateKernels)
UNSUPPORTED(cudaLibraryGetGlobal)
UNSUPPORTED(cudaLibraryGetKernel)
UNSUPPORTED(cudaLibraryGetKernelCount)
UNSUPPORTED(cudaLibraryGetManaged)
UNSUPPORTED(cudaLibraryGetUnifiedFunction)
UNSUPPORTED(cudaLibraryLoadData)
UNSUPPORTED(cudaLibraryLoadFromFile)
UNSUPPORTED(cudaLibraryUnload)
UNSUPPORTED(cudaMalloc3DArray)
UNSUPPORTED(cudaMallocArray)
UNSUPPORTED(cudaMemDiscardAndPrefetchBatchAsync)
UNSUPPORTED(cudaMemDiscardBatchAsync)
UNSUPPORTED(cudaMemGetDefaultMemPool)
UNSUPPORTED(cudaMemGetMemPool)
UNSUPPORTED(cudaMemPoolCreate)
UNSUPPORTED(cudaMemPoolDestroy)
UNSUPPORTED(cudaMemPoolExportPointer)
UNSUPPORTED(cudaMemPoolExportToShareableHandle)
UNSUPPORTED(cudaMemPoolGetAccess)
UNSUPPORTED(cudaMemPoolImportFromShareableHandle)
UNSUPPORTED(cudaMemPoolImportPointer)
UNSUPPORTED(cudaMemPoolSetAccess)
UNSUPPORTED(cudaMemPrefetchBatchAsync)
UNSUPPORTED(cudaMemRangeGetAttribute)
UNSUPPORTED(cudaMemRangeGetAttributes)
UNSUPPORTED(cudaMemSetMemPool)
UNSUPPORTED(cudaMemcpy2DArrayToArray)
UNSUPPORTED(cudaMemcpy2DFromArray)
UNSUPPORTED(cudaMemcpy2DFromArrayAsync)
UNSUPPORTED(cudaMemcpy2DToArray)
UNSUPPORTED(cudaMemcpy2DToArrayAsync)
UNSUPPORTED(cudaMemcpy3DBatchAsync)
UNSUPPORTED(cudaMemcpy3DPeer)
UNSUPPORTED(cudaMemcpy3DPeerAsync)
UNSUPPORTED(cudaMemcpyArrayToArray)
UNSUPPORTED(cudaMemcpyBatchAsync)
UNSUPPORTED(cudaMemcpyFromArray)
UNSUPPORTED(cudaMemcpyFromArrayAsync)
UNSUPPORTED(cudaMemcpyFromSymbol)
UNSUPPORTED(cudaMemcpyFromSymbolAsync)
UNSUPPORTED(cudaMemcpyToArray)
UNSUPPORTED(cudaMemcpyToArrayAsync)
UNSUPPORTED(cudaMemcpyToSymbol)
UNSUPPORTED(cudaMemcpyToSymbolAsync)
UNSUPPORTED(cudaOccupancyAvailableDynamicSMemPerBlock)
UNSUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
UNSUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
UNSUPPORTED(cudaOccupancyMaxActiveClusters)
UNSUPPORTED(cudaOccupancyMaxPotentialClusterSize)
UNSUPPORTED(cudaStreamBeginCaptureToGraph)
UNSUPPORTED(cudaStreamCopyAttributes)
UNSUPPORTED(cudaStreamGetAttribute)
UNSUPPORTED(cudaStreamSetAttribute)
UNSUPPORTED(cudaStreamUpdateCaptureDependencies)
UNSUPPORTED(cudaUserObjectCreate)
UNSUPPORTED(cudaUserObjectRelease)
UNSUPPORTED(cudaUserObjectRetain)

// Driver entry points: there is no driver, so every lookup succeeds with "symbol not found".
extern "C" {
cudaError_t cudaGetDriverEntryPoint(const char*, void** function, unsigned long long flags,
                                    int* found);
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned int version,
                                             unsigned long long flags, int* found);
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    int* found) {
  constexpr int kSymbolNotFound = 1;
  if (name == nullptr || function == nullptr) {
    return ashlar::hostrt::record_error(cudaErrorInvalidValue);
  }
  *function = nullptr;
  if (found != nullptr) {
    *found = kSymbolNotFound;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int,
                                             unsigned long long flags, int* found) {
  return cudaGetDriverEntryPoint(name, function, flags, found);
}

// Programs register their kernels before main(). Registration succeeds; a launch is unsupported.
extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void);
void __cudaRegisterVar(void);
void __cudaRegisterManagedVar(void);
char __cudaInitModule(void**);
unsigned int __cudaPushCallConfiguration(void);
}

void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction() {}
void __cudaRegisterVar() {}
void __cudaRegisterManagedVar() {}
char __cudaInitModule(void**) { return 0; }
unsigned int __cudaPushCallConfiguration() { return 0; }
UNSUPPORTED(__cudaPopCallConfiguration)
UNSUPPORTED(__cudaLaunchKernel)
UNSUPPORTED(__cudaGetKernel)
