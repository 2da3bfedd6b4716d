// CUDA 12 functions whose parameters differ from the CUDA 13 function of the same name. This file
// includes no CUDA header, because that would declare the CUDA 13 versions.

#include <cstddef>

extern "C" {
int hostrt_capture_info(void* stream, int* status, unsigned long long* id);
int hostrt_advise(const void* pointer, size_t bytes, void* stream);

int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id);
int cudaMemAdvise(const void* pointer, size_t bytes, int advice, int device);
int cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, void* stream);
}

int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return hostrt_capture_info(stream, status, id);
}

int cudaMemAdvise(const void* pointer, size_t bytes, int, int) {
  return hostrt_advise(pointer, bytes, nullptr);
}

int cudaMemPrefetchAsync(const void* pointer, size_t bytes, int, void* stream) {
  return hostrt_advise(pointer, bytes, stream);
}
