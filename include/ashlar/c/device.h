/* The C API: devices, engines, device memory, copies, timing. */
#ifndef ASHLAR_C_DEVICE_H
#define ASHLAR_C_DEVICE_H

#include <ashlar/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- devices and engines. A device is named "cpu", "cuda:0", "best" or as a known device ("h200"),
 * which need not be present; null means "cpu". */

ashlar_status ashlar_device_count(int32_t* count);
ashlar_status ashlar_device_name(int32_t index, char* buffer, size_t capacity, size_t* needed);
ashlar_status ashlar_device_present(const char* device, int* present);
/* The name of the GPU whose context is current in the calling thread, else of the fastest device
 * present. Creates no context. */
ashlar_status ashlar_device_current(char* buffer, size_t capacity, size_t* needed);

typedef int32_t ashlar_device_kind;
enum { ASHLAR_CPU = 0, ASHLAR_CUDA };

/* See ashlar::DeviceProps. Engines are selected by these values alone. */
typedef struct ashlar_device_props {
  size_t size;
  int64_t vector_bytes;
  int64_t l1_bytes;
  int64_t l2_bytes;
  int64_t l3_bytes;
  int64_t shared_bytes;
  double flops_f32;
  double flops_f16;
  double bytes_per_second;
  double launch_seconds;
  ashlar_device_kind kind;
  int32_t present;
  int32_t ordinal;
  int32_t compute_units;
  int32_t compute_capability;
  int32_t reserved;
} ashlar_device_props;
void ashlar_device_props_init(ashlar_device_props* props);
ashlar_status ashlar_device_get_props(const char* device, ashlar_device_props* props);
/* "Intel Xeon, AVX-512, 2 threads" */
ashlar_status ashlar_device_description(const char* device, char* buffer, size_t capacity,
                                        size_t* needed);

typedef int32_t ashlar_engine_field;
enum {
  ASHLAR_ENGINE_ID = 0,
  ASHLAR_ENGINE_KIND,
  ASHLAR_ENGINE_DESCRIPTION,
  ASHLAR_ENGINE_METHOD /* the fastest units it uses: "tensor cores" */
};
ashlar_status ashlar_engine_count(const char* device, int32_t* count);
ashlar_status ashlar_engine_text(const char* device, int32_t index, ashlar_engine_field field,
                                 char* buffer, size_t capacity, size_t* needed);

/* --- copies between host memory and memory of the device (both host memory for the CPU), ordered
 * after earlier work of the stream and complete on return. `stream`, here and below, is a CUstream,
 * null for the default stream; the CPU ignores it. */

ashlar_status ashlar_device_upload(const char* device, void* to, const void* from_host,
                                   int64_t bytes, void* stream);
ashlar_status ashlar_device_download(const char* device, void* to_host, const void* from,
                                     int64_t bytes, void* stream);
/* Asynchronous: may not have completed on return. `words` (lengths, offsets, labels) may be reused
 * on return. Both may be captured into a CUDA graph, which keeps the values. */
ashlar_status ashlar_device_enqueue_upload(const char* device, void* to, const int32_t* words,
                                           int64_t count, void* stream);
ashlar_status ashlar_device_enqueue_fill(const char* device, void* to, uint8_t value, int64_t bytes,
                                         void* stream);
/* Blocks until all work enqueued on the stream is complete. */
ashlar_status ashlar_device_synchronize(const char* device, void* stream);

/* --- device memory (host memory for the CPU), at least 64-byte aligned: a convenience, plans
 * accept any device pointer */

ashlar_status ashlar_memory_create(const char* device, int64_t bytes, ashlar_memory** memory);
void ashlar_memory_destroy(ashlar_memory* memory); /* null is ignored */
ashlar_status ashlar_memory_data(const ashlar_memory* memory, void** data);
ashlar_status ashlar_memory_bytes(const ashlar_memory* memory, int64_t* bytes);
/* From the first byte on, after all work of the default stream, complete on return. */
ashlar_status ashlar_memory_upload(ashlar_memory* memory, const void* host, int64_t bytes);
ashlar_status ashlar_memory_download(const ashlar_memory* memory, void* host, int64_t bytes);
ashlar_status ashlar_memory_fill(ashlar_memory* memory, uint8_t value);

/* --- elapsed device time between two points of a stream */

ashlar_status ashlar_timer_create(const char* device, ashlar_timer** timer);
void ashlar_timer_destroy(ashlar_timer* timer); /* null is ignored */
ashlar_status ashlar_timer_start(ashlar_timer* timer, void* stream);
ashlar_status ashlar_timer_stop(ashlar_timer* timer, void* stream);
/* Blocks until the point of ashlar_timer_stop is reached. */
ashlar_status ashlar_timer_seconds(const ashlar_timer* timer, double* seconds);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
