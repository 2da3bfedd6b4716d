// What only a GPU can do: kernels and what is made of them, graphs built by hand, arrays for
// textures, memory shared between processes. Each is exported, so that programs which contain the
// calls start, and answers cudaErrorNotSupported after saying which call it was.

#include "error.hpp"

// The arguments are not looked at, so that none are declared; a caller of this platform's C
// convention passes what it likes.
#define REFUSE(name)                 \
  extern "C" cudaError_t name(void); \
  extern "C" cudaError_t name(void) { return ashlar::hostrt::refuse(#name); }

REFUSE(cudaArrayGetInfo)
REFUSE(cudaArrayGetMemoryRequirements)
REFUSE(cudaCtxResetPersistingL2Cache)
REFUSE(cudaDeviceDisablePeerAccess)
REFUSE(cudaDeviceEnablePeerAccess)
REFUSE(cudaDeviceFlushGPUDirectRDMAWrites)
REFUSE(cudaDeviceGetCacheConfig)
REFUSE(cudaDeviceGetGraphMemAttribute)
REFUSE(cudaDeviceGetHostAtomicCapabilities)
REFUSE(cudaDeviceGetP2PAtomicCapabilities)
REFUSE(cudaDeviceGetP2PAttribute)
REFUSE(cudaDeviceGetSharedMemConfig)
REFUSE(cudaDeviceGraphMemTrim)
REFUSE(cudaDeviceSetCacheConfig)
REFUSE(cudaDeviceSetGraphMemAttribute)
REFUSE(cudaDeviceSetSharedMemConfig)
REFUSE(cudaFreeArray)
REFUSE(cudaFuncGetAttributes)
REFUSE(cudaFuncGetName)
REFUSE(cudaFuncGetParamInfo)
REFUSE(cudaFuncSetAttribute)
REFUSE(cudaFuncSetCacheConfig)
REFUSE(cudaFuncSetSharedMemConfig)
REFUSE(cudaGetChannelDesc)
REFUSE(cudaGetExportTable)
REFUSE(cudaGetFuncBySymbol)
REFUSE(cudaGetKernel)
REFUSE(cudaGetSymbolAddress)
REFUSE(cudaGetSymbolSize)
REFUSE(cudaGraphAddChildGraphNode)
REFUSE(cudaGraphAddDependencies)
REFUSE(cudaGraphAddEmptyNode)
REFUSE(cudaGraphAddEventRecordNode)
REFUSE(cudaGraphAddEventWaitNode)
REFUSE(cudaGraphAddHostNode)
REFUSE(cudaGraphAddKernelNode)
REFUSE(cudaGraphAddMemAllocNode)
REFUSE(cudaGraphAddMemFreeNode)
REFUSE(cudaGraphAddMemcpyNode)
REFUSE(cudaGraphAddMemcpyNode1D)
REFUSE(cudaGraphAddMemcpyNodeFromSymbol)
REFUSE(cudaGraphAddMemcpyNodeToSymbol)
REFUSE(cudaGraphAddMemsetNode)
REFUSE(cudaGraphAddNode)
REFUSE(cudaGraphChildGraphNodeGetGraph)
REFUSE(cudaGraphClone)
REFUSE(cudaGraphConditionalHandleCreate)
REFUSE(cudaGraphDebugDotPrint)
REFUSE(cudaGraphDestroyNode)
REFUSE(cudaGraphEventRecordNodeGetEvent)
REFUSE(cudaGraphEventRecordNodeSetEvent)
REFUSE(cudaGraphEventWaitNodeGetEvent)
REFUSE(cudaGraphEventWaitNodeSetEvent)
REFUSE(cudaGraphExecChildGraphNodeSetParams)
REFUSE(cudaGraphExecEventRecordNodeSetEvent)
REFUSE(cudaGraphExecEventWaitNodeSetEvent)
REFUSE(cudaGraphExecGetFlags)
REFUSE(cudaGraphExecHostNodeSetParams)
REFUSE(cudaGraphExecKernelNodeSetParams)
REFUSE(cudaGraphExecMemcpyNodeSetParams)
REFUSE(cudaGraphExecMemcpyNodeSetParams1D)
REFUSE(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
REFUSE(cudaGraphExecMemcpyNodeSetParamsToSymbol)
REFUSE(cudaGraphExecMemsetNodeSetParams)
REFUSE(cudaGraphExecNodeSetParams)
REFUSE(cudaGraphExecUpdate)
REFUSE(cudaGraphGetEdges)
REFUSE(cudaGraphGetRootNodes)
REFUSE(cudaGraphHostNodeGetParams)
REFUSE(cudaGraphHostNodeSetParams)
REFUSE(cudaGraphInstantiateWithParams)
REFUSE(cudaGraphKernelNodeCopyAttributes)
REFUSE(cudaGraphKernelNodeGetAttribute)
REFUSE(cudaGraphKernelNodeGetParams)
REFUSE(cudaGraphKernelNodeSetAttribute)
REFUSE(cudaGraphKernelNodeSetParams)
REFUSE(cudaGraphMemAllocNodeGetParams)
REFUSE(cudaGraphMemFreeNodeGetParams)
REFUSE(cudaGraphMemcpyNodeGetParams)
REFUSE(cudaGraphMemcpyNodeSetParams)
REFUSE(cudaGraphMemcpyNodeSetParams1D)
REFUSE(cudaGraphMemcpyNodeSetParamsFromSymbol)
REFUSE(cudaGraphMemcpyNodeSetParamsToSymbol)
REFUSE(cudaGraphMemsetNodeGetParams)
REFUSE(cudaGraphMemsetNodeSetParams)
REFUSE(cudaGraphNodeFindInClone)
REFUSE(cudaGraphNodeGetDependencies)
REFUSE(cudaGraphNodeGetDependentNodes)
REFUSE(cudaGraphNodeGetEnabled)
REFUSE(cudaGraphNodeGetType)
REFUSE(cudaGraphNodeSetEnabled)
REFUSE(cudaGraphNodeSetParams)
REFUSE(cudaGraphReleaseUserObject)
REFUSE(cudaGraphRemoveDependencies)
REFUSE(cudaGraphRetainUserObject)
REFUSE(cudaIpcCloseMemHandle)
REFUSE(cudaIpcGetEventHandle)
REFUSE(cudaIpcGetMemHandle)
REFUSE(cudaIpcOpenEventHandle)
REFUSE(cudaIpcOpenMemHandle)
REFUSE(cudaKernelSetAttributeForDevice)
REFUSE(cudaLaunchCooperativeKernel)
REFUSE(cudaLaunchKernel)
REFUSE(cudaLaunchKernelExC)
REFUSE(cudaLibraryEnumerateKernels)
REFUSE(cudaLibraryGetGlobal)
REFUSE(cudaLibraryGetKernel)
REFUSE(cudaLibraryGetKernelCount)
REFUSE(cudaLibraryGetManaged)
REFUSE(cudaLibraryGetUnifiedFunction)
REFUSE(cudaLibraryLoadData)
REFUSE(cudaLibraryLoadFromFile)
REFUSE(cudaLibraryUnload)
REFUSE(cudaMalloc3DArray)
REFUSE(cudaMallocArray)
REFUSE(cudaMemDiscardAndPrefetchBatchAsync)
REFUSE(cudaMemDiscardBatchAsync)
REFUSE(cudaMemGetDefaultMemPool)
REFUSE(cudaMemGetMemPool)
REFUSE(cudaMemPoolCreate)
REFUSE(cudaMemPoolDestroy)
REFUSE(cudaMemPoolExportPointer)
REFUSE(cudaMemPoolExportToShareableHandle)
REFUSE(cudaMemPoolGetAccess)
REFUSE(cudaMemPoolImportFromShareableHandle)
REFUSE(cudaMemPoolImportPointer)
REFUSE(cudaMemPoolSetAccess)
REFUSE(cudaMemPrefetchBatchAsync)
REFUSE(cudaMemRangeGetAttribute)
REFUSE(cudaMemRangeGetAttributes)
REFUSE(cudaMemSetMemPool)
REFUSE(cudaMemcpy2DArrayToArray)
REFUSE(cudaMemcpy2DFromArray)
REFUSE(cudaMemcpy2DFromArrayAsync)
REFUSE(cudaMemcpy2DToArray)
REFUSE(cudaMemcpy2DToArrayAsync)
REFUSE(cudaMemcpy3DBatchAsync)
REFUSE(cudaMemcpy3DPeer)
REFUSE(cudaMemcpy3DPeerAsync)
REFUSE(cudaMemcpyArrayToArray)
REFUSE(cudaMemcpyBatchAsync)
REFUSE(cudaMemcpyFromArray)
REFUSE(cudaMemcpyFromArrayAsync)
REFUSE(cudaMemcpyFromSymbol)
REFUSE(cudaMemcpyFromSymbolAsync)
REFUSE(cudaMemcpyToArray)
REFUSE(cudaMemcpyToArrayAsync)
REFUSE(cudaMemcpyToSymbol)
REFUSE(cudaMemcpyToSymbolAsync)
REFUSE(cudaOccupancyAvailableDynamicSMemPerBlock)
REFUSE(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
REFUSE(cudaOccupancyMaxActiveClusters)
REFUSE(cudaOccupancyMaxPotentialClusterSize)
REFUSE(cudaStreamBeginCaptureToGraph)
REFUSE(cudaStreamCopyAttributes)
REFUSE(cudaStreamGetAttribute)
REFUSE(cudaStreamSetAttribute)
REFUSE(cudaStreamUpdateCaptureDependencies)
REFUSE(cudaUserObjectCreate)
REFUSE(cudaUserObjectRelease)
REFUSE(cudaUserObjectRetain)

// There is no driver, so nothing is found in it: that is an answer, not an error.
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
    return ashlar::hostrt::answer(cudaErrorInvalidValue);
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

// Programs with kernels register them before main(). That is allowed; a launch is refused.
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
REFUSE(__cudaPopCallConfiguration)
REFUSE(__cudaLaunchKernel)
REFUSE(__cudaGetKernel)
