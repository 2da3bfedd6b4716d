// Memory copies and fills. Every range is checked against the known allocations first, so that an
// error on a GPU is also an error here.

#include <cstring>

#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

namespace {

// A 3-d range of bytes: `depth` slices of `height` rows of `width` bytes.
struct Box {
  const void* pointer;
  size_t row_pitch;    // bytes from row to row
  size_t slice_pitch;  // bytes from slice to slice

  // Bytes from the first to the last one used; false on overflow.
  bool span(const cudaExtent& extent, size_t* bytes) const {
    size_t rows = 0;
    size_t slices = 0;
    return !__builtin_mul_overflow(row_pitch, extent.height - 1, &rows) &&
           !__builtin_mul_overflow(slice_pitch, extent.depth - 1, &slices) &&
           !__builtin_add_overflow(rows, slices, bytes) &&
           !__builtin_add_overflow(*bytes, extent.width, bytes);
  }

  bool is_usable(const cudaExtent& extent) const {
    size_t bytes = 0;
    return span(extent, &bytes) && usable(pointer, bytes);
  }

  char* row(size_t slice, size_t line) const {
    return const_cast<char*>(static_cast<const char*>(pointer)) + slice * slice_pitch +
           line * row_pitch;
  }
};

bool is_empty(const cudaExtent& extent) {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

bool pitch_too_small(const Box& box, const cudaExtent& extent) {
  return extent.height * extent.depth > 1 && box.row_pitch < extent.width;
}

cudaError_t copy(const Box& to, const Box& from, const cudaExtent& extent, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if (check(stream) != cudaSuccess) {
    return check(stream);
  }
  if (is_empty(extent)) {
    return cudaSuccess;
  }
  if (pitch_too_small(to, extent) || pitch_too_small(from, extent)) {
    return cudaErrorInvalidPitchValue;
  }
  if (!to.is_usable(extent) || !from.is_usable(extent)) {
    return cudaErrorInvalidValue;
  }
  return submit(stream, [=] {
    for (size_t slice = 0; slice < extent.depth; ++slice) {
      for (size_t line = 0; line < extent.height; ++line) {
        std::memmove(to.row(slice, line), from.row(slice, line), extent.width);
      }
    }
  });
}

cudaError_t fill(const Box& box, int value, const cudaExtent& extent, cudaStream_t stream) {
  if (check(stream) != cudaSuccess || is_empty(extent)) {
    return check(stream);
  }
  if (pitch_too_small(box, extent)) {
    return cudaErrorInvalidValue;
  }
  if (!box.is_usable(extent)) {
    return cudaErrorInvalidValue;
  }
  return submit(stream, [=] {
    for (size_t slice = 0; slice < extent.depth; ++slice) {
      for (size_t line = 0; line < extent.height; ++line) {
        std::memset(box.row(slice, line), value, extent.width);
      }
    }
  });
}

Box line(const void* pointer, size_t bytes) { return {pointer, bytes, bytes}; }

// The range of a pitched volume that starts at `position`.
Box part(const cudaPitchedPtr& volume, const cudaPos& position) {
  const size_t slice = volume.pitch * volume.ysize;
  const char* first = static_cast<const char*>(volume.ptr);
  return {first == nullptr ? nullptr
                           : first + position.z * slice + position.y * volume.pitch + position.x,
          volume.pitch, slice};
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return record_error(copy(line(to, bytes), line(from, bytes), {bytes, 1, 1}, kind, stream));
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return is_device(to_device) && is_device(from_device)
             ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
             : record_error(cudaErrorInvalidDevice);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return record_error(
      copy({to, to_pitch, 0}, {from, from_pitch, 0}, {width, height, 1}, kind, stream));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* request) {
  return cudaMemcpy3DAsync(request, nullptr);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* request, cudaStream_t stream) {
  if (request == nullptr || request->srcArray != nullptr || request->dstArray != nullptr) {
    return record_error(cudaErrorInvalidValue);  // cudaArray copies need texture memory
  }
  return record_error(copy(part(request->dstPtr, request->dstPos),
                           part(request->srcPtr, request->srcPos), request->extent, request->kind,
                           stream));
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return record_error(fill(line(pointer, bytes), value, {bytes, 1, 1}, stream));
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, nullptr);
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return record_error(fill({pointer, pitch, 0}, value, {width, height, 1}, stream));
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pointer, value, extent, nullptr);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return record_error(fill(part(pointer, {0, 0, 0}), value, extent, stream));
}
