// C API: devices, engines, device memory, copies, timing.
#include <ashlar/memory.hpp>

#include "api/c_api.hpp"

static_assert(static_cast<int>(ashlar::DeviceKind::cuda) == ASHLAR_CUDA);

struct ashlar_memory {
  ashlar::Memory memory;
};
struct ashlar_timer {
  ashlar::Timer timer;
};

namespace ashlar::capi {

namespace {

Device present_device(const char* name) {
  const Device device = device_from_c(name);
  if (!device.props().present)
    fail(ErrorCode::device, "device: '{}' is not present here", device.props().name);
  return device;
}

// Memory of the caller: null only if it is empty.
template <class Pointer>
Pointer require_memory(Pointer memory, std::int64_t bytes, const char* argument) {
  if (bytes < 0) fail(ErrorCode::invalid_argument, "bytes: got {}, expected 0 or more", bytes);
  if (!memory && bytes > 0)
    fail(ErrorCode::invalid_argument, "{}: got a null pointer for {} bytes", argument, bytes);
  return memory;
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

// --- devices and engines

ashlar_status ashlar_device_count(int32_t* count) {
  return guard(
      [&] { require(count, "count") = static_cast<int32_t>(Device::known_names().size()); });
}

ashlar_status ashlar_device_name(int32_t index, char* buffer, size_t capacity, size_t* needed) {
  return guard([&] { copy_text(row_at(Device::known_names(), index), buffer, capacity, needed); });
}

ashlar_status ashlar_device_present(const char* device, int* present) {
  return guard(
      [&] { require(present, "present") = device_from_c(device).props().present ? 1 : 0; });
}

ashlar_status ashlar_device_current(char* buffer, size_t capacity, size_t* needed) {
  return guard([&] { copy_text(Device::current().props().name, buffer, capacity, needed); });
}

void ashlar_device_props_init(ashlar_device_props* props) { init_sized(props); }

ashlar_status ashlar_device_get_props(const char* device, ashlar_device_props* props) {
  return guard([&] {
    const DeviceProps source = device_from_c(device).props();
    ashlar_device_props result;
    init_sized(&result);
    result.vector_bytes = source.vector_bytes;
    result.l1_bytes = source.l1_bytes;
    result.l2_bytes = source.l2_bytes;
    result.l3_bytes = source.l3_bytes;
    result.shared_bytes = source.shared_bytes;
    result.flops_f32 = source.flops_f32;
    result.flops_f16 = source.flops_f16;
    result.bytes_per_second = source.bytes_per_second;
    result.launch_seconds = source.launch_seconds;
    result.kind = static_cast<ashlar_device_kind>(source.kind);
    result.present = source.present;
    result.ordinal = source.ordinal;
    result.compute_units = source.compute_units;
    result.compute_capability = source.compute_capability;
    write_sized(require(props, "props"), result);
  });
}

ashlar_status ashlar_device_description(const char* device, char* buffer, size_t capacity,
                                        size_t* needed) {
  return guard(
      [&] { copy_text(device_from_c(device).props().description, buffer, capacity, needed); });
}

ashlar_status ashlar_engine_count(const char* device, int32_t* count) {
  return guard([&] {
    require(count, "count") =
        static_cast<int32_t>(engines(device_from_c(device).props().kind).size());
  });
}

ashlar_status ashlar_engine_text(const char* device, int32_t index, ashlar_engine_field field,
                                 char* buffer, size_t capacity, size_t* needed) {
  return guard([&] {
    const std::vector<EngineInfo> rows = engines(device_from_c(device).props().kind);
    const EngineInfo& row = row_at(rows, index);
    switch (field) {
      case ASHLAR_ENGINE_ID: return copy_text(row.id, buffer, capacity, needed);
      case ASHLAR_ENGINE_KIND: return copy_text(row.kind, buffer, capacity, needed);
      case ASHLAR_ENGINE_DESCRIPTION: return copy_text(row.description, buffer, capacity, needed);
      case ASHLAR_ENGINE_METHOD: return copy_text(to_string(row.method), buffer, capacity, needed);
    }
    fail(ErrorCode::invalid_argument, "field: got {}, expected one of ashlar_engine_field", field);
  });
}

// --- copies

ashlar_status ashlar_device_upload(const char* device, void* to, const void* from_host,
                                   int64_t bytes, void* stream) {
  return guard([&] {
    require_memory(to, bytes, "to");
    require_memory(from_host, bytes, "from_host");
    present_device(device).upload(to, from_host, bytes, stream);
  });
}

ashlar_status ashlar_device_download(const char* device, void* to_host, const void* from,
                                     int64_t bytes, void* stream) {
  return guard([&] {
    require_memory(to_host, bytes, "to_host");
    require_memory(from, bytes, "from");
    present_device(device).download(to_host, from, bytes, stream);
  });
}

ashlar_status ashlar_device_enqueue_upload(const char* device, void* to, const int32_t* words,
                                           int64_t count, void* stream) {
  return guard([&] {
    const std::span<const int32_t> source = require_array(words, count, "words");
    require_memory(to, count, "to");
    present_device(device).enqueue_upload(to, source, stream);
  });
}

ashlar_status ashlar_device_enqueue_fill(const char* device, void* to, uint8_t value, int64_t bytes,
                                         void* stream) {
  return guard([&] {
    require_memory(to, bytes, "to");
    present_device(device).enqueue_fill(to, std::byte{value}, bytes, stream);
  });
}

ashlar_status ashlar_device_synchronize(const char* device, void* stream) {
  return guard([&] { present_device(device).synchronize(stream); });
}

// --- device memory

ashlar_status ashlar_memory_create(const char* device, int64_t bytes, ashlar_memory** memory) {
  return guard([&] {
    ashlar_memory*& result = require(memory, "memory");
    result = new ashlar_memory{Memory(device_from_c(device), bytes)};
  });
}

void ashlar_memory_destroy(ashlar_memory* memory) { delete memory; }

ashlar_status ashlar_memory_data(const ashlar_memory* memory, void** data) {
  return guard([&] {
    const Memory& source = require(memory, "memory").memory;
    require(data, "data") = source.data();
  });
}

ashlar_status ashlar_memory_bytes(const ashlar_memory* memory, int64_t* bytes) {
  return guard([&] {
    const Memory& source = require(memory, "memory").memory;
    require(bytes, "bytes") = source.bytes();
  });
}

ashlar_status ashlar_memory_upload(ashlar_memory* memory, const void* host, int64_t bytes) {
  return guard([&] {
    Memory& target = require(memory, "memory").memory;
    target.upload(require_memory(host, bytes, "host"), bytes);
  });
}

ashlar_status ashlar_memory_download(const ashlar_memory* memory, void* host, int64_t bytes) {
  return guard([&] {
    const Memory& source = require(memory, "memory").memory;
    source.download(require_memory(host, bytes, "host"), bytes);
  });
}

ashlar_status ashlar_memory_fill(ashlar_memory* memory, uint8_t value) {
  return guard([&] { require(memory, "memory").memory.fill(std::byte{value}); });
}

// --- timing

ashlar_status ashlar_timer_create(const char* device, ashlar_timer** timer) {
  return guard([&] {
    ashlar_timer*& result = require(timer, "timer");
    result = new ashlar_timer{Timer(device_from_c(device))};
  });
}

void ashlar_timer_destroy(ashlar_timer* timer) { delete timer; }

ashlar_status ashlar_timer_start(ashlar_timer* timer, void* stream) {
  return guard([&] { require(timer, "timer").timer.start(stream); });
}

ashlar_status ashlar_timer_stop(ashlar_timer* timer, void* stream) {
  return guard([&] { require(timer, "timer").timer.stop(stream); });
}

ashlar_status ashlar_timer_seconds(const ashlar_timer* timer, double* seconds) {
  return guard([&] {
    const Timer& source = require(timer, "timer").timer;
    require(seconds, "seconds") = source.seconds();
  });
}

}  // extern "C"
