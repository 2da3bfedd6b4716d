// Memory allocation, freeing and queries.

#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

struct CUmemPoolHandle_st {};

namespace {

CUmemPoolHandle_st the_pool;

cudaError_t allocate(void** pointer, size_t bytes, cudaMemoryType type, unsigned int flags = 0) {
  if (pointer == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *pointer = bytes == 0 ? nullptr : Memory::instance().allocate(bytes, type, flags);
  return record_error(bytes > 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t release(void* pointer, bool host) {
  return record_error(pointer == nullptr || Memory::instance().release(pointer, host)
                          ? cudaSuccess
                          : cudaErrorInvalidValue);
}

// The pitch for rows of `width` bytes; false when the total size overflows.
bool pitched(size_t width, size_t rows, size_t* pitch, size_t* bytes) {
  return !__builtin_add_overflow(width, Memory::kAlignment - 1, pitch) &&
         (*pitch -= *pitch % Memory::kAlignment, !__builtin_mul_overflow(*pitch, rows, bytes));
}

cudaError_t pool_of(cudaMemPool_t* pool, int device) {
  if (pool == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *pool = &the_pool;
  return record_error(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  size_t bytes = 0;
  if (pointer == nullptr || pitch == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  return pitched(width, height, pitch, &bytes) ? allocate(pointer, bytes, cudaMemoryTypeDevice)
                                               : record_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  size_t rows = 0;
  if (pointer == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
    return record_error(cudaErrorMemoryAllocation);
  }
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, rows);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  if ((flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) || bytes == 0) {
    return record_error(cudaErrorInvalidValue);
  }
  return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  constexpr unsigned int kKnown =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  return (flags & ~kKnown) != 0 ? record_error(cudaErrorInvalidValue)
                                : allocate(pointer, bytes, cudaMemoryTypeHost, flags);
}

cudaError_t cudaFree(void* pointer) { return release(pointer, false); }
cudaError_t cudaFreeHost(void* pointer) { return release(pointer, true); }

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  constexpr unsigned int kKnown = 0xf;
  if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  return record_error(Memory::instance().enter(pointer, bytes, flags)
                          ? cudaSuccess
                          : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* pointer) {
  if (pointer == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  return record_error(Memory::instance().leave(pointer) ? cudaSuccess
                                                        : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  const auto block = Memory::instance().find(host);
  if (device == nullptr || flags != 0 || !block || block->type != cudaMemoryTypeHost) {
    return record_error(cudaErrorInvalidValue);
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  const auto block = Memory::instance().find(host);
  if (flags == nullptr || !block || block->type != cudaMemoryTypeHost) {
    return record_error(cudaErrorInvalidValue);
  }
  *flags = block->flags;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *attributes = {};
  void* address = const_cast<void*>(pointer);
  const auto block = Memory::instance().find(pointer);
  if (!block) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = address;
    return cudaSuccess;
  }
  attributes->type = block->type;
  attributes->devicePointer = address;
  attributes->hostPointer = block->type == cudaMemoryTypeDevice ? nullptr : address;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  *free = free_memory();
  *total = total_memory();
  return cudaSuccess;
}

namespace ashlar::hostrt {

cudaError_t advise(const void* pointer, size_t bytes, cudaStream_t stream) {
  return usable(pointer, bytes) ? check(stream) : cudaErrorInvalidValue;
}

}  // namespace ashlar::hostrt

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? record_error(error) : cudaMalloc(pointer, bytes);
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return pool != &the_pool ? record_error(cudaErrorInvalidValue)
                           : cudaMallocAsync(pointer, bytes, stream);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? record_error(error) : cudaFree(pointer);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return pool_of(pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return pool_of(pool, device); }

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (!is_device(device)) {
    return record_error(cudaErrorInvalidDevice);
  }
  return record_error(pool == &the_pool ? cudaSuccess : cudaErrorInvalidValue);
}

// The pool holds no freed memory, whatever its release threshold.
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (pool != &the_pool || value == nullptr ||
      attribute < cudaMemPoolReuseFollowEventDependencies ||
      attribute > cudaMemPoolAttrUsedMemHigh) {
    return record_error(cudaErrorInvalidValue);
  }
  if (attribute < cudaMemPoolAttrReleaseThreshold) {
    *static_cast<int*>(value) = 1;
  } else {
    *static_cast<unsigned long long*>(value) = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const bool known = pool == &the_pool && value != nullptr &&
                     attribute >= cudaMemPoolReuseFollowEventDependencies &&
                     attribute <= cudaMemPoolAttrUsedMemHigh;
  return record_error(known ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return record_error(pool == &the_pool ? cudaSuccess : cudaErrorInvalidValue);
}
