// The part of the CUDA driver API that is used here, declared from its documentation: libcuda.so.1
// is opened at run time, and no CUDA header is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ashlar::cuda {

using DeviceAddress = std::uint64_t;
using DeviceOrdinal = int;
using ContextHandle = struct ContextObject*;
using LibraryHandle = struct LibraryObject*;
using KernelHandle = struct KernelObject*;
using FunctionHandle = struct FunctionObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using GraphHandle = struct GraphObject*;
using GraphNodeHandle = struct GraphNodeObject*;
using GraphExecHandle = struct GraphExecObject*;

enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_image = 200,
  no_binary_for_gpu = 209,
  unsupported_ptx_version = 222,
  not_found = 500,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  misaligned_address = 716,
  launch_failed = 719,
  system_driver_mismatch = 803,
  stream_capture_unsupported = 900,
};

enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  registers_per_block = 12,
  clock_kilohertz = 13,
  sm_count = 16,
  memory_clock_kilohertz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  threads_per_sm = 39,
  capability_major = 75,
  capability_minor = 76,
  shared_bytes_per_sm = 81,
  shared_bytes_per_block = 97,  // opt-in maximum
};

enum class KernelAttribute : int {
  max_threads = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  dynamic_shared_bytes = 8,
};

enum class LaunchAttributeId : int {
  cooperative = 2,
  cluster_dimension = 4,
  programmatic_serialization = 6
};
enum class TensorMapType : int { u8 = 0, f16 = 6, f32 = 7, f64 = 8, bf16 = 9, tf32 = 11 };
enum class TensorMapSwizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };

struct LaunchAttribute {
  LaunchAttributeId id;
  int padding;
  union Value {
    char bytes[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic_serialization;
  } value;
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// One pointer per function; members are named after what they do.
struct DriverApi {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);  // 13000 for 13.0
  Result (*error_name)(Result error, const char** name);
  Result (*error_text)(Result error, const char** text);

  Result (*device_count)(int* count);
  Result (*device_get)(DeviceOrdinal* device, int ordinal);
  Result (*device_name)(char* name, int length, DeviceOrdinal device);
  Result (*device_attribute)(int* value, DeviceAttribute attribute, DeviceOrdinal device);
  Result (*device_memory)(std::size_t* bytes, DeviceOrdinal device);

  Result (*retain_primary_context)(ContextHandle* context, DeviceOrdinal device);
  Result (*primary_context_state)(DeviceOrdinal device, unsigned* flags, int* active);
  Result (*current_context)(ContextHandle* context);
  Result (*push_context)(ContextHandle context);
  Result (*pop_context)(ContextHandle* context);
  Result (*context_device)(DeviceOrdinal* device);
  Result (*synchronize_context)();

  Result (*load_library)(LibraryHandle* library, const void* code, int* jit_options,
                         void** jit_values, unsigned jit_count, int* library_options,
                         void** library_values, unsigned library_count);
  Result (*unload_library)(LibraryHandle library);
  Result (*library_kernel)(KernelHandle* kernel, LibraryHandle library, const char* name);
  Result (*kernel_function)(FunctionHandle* function, KernelHandle kernel);
  Result (*kernel_attribute)(int* value, KernelAttribute attribute, KernelHandle kernel,
                             DeviceOrdinal device);
  Result (*set_kernel_attribute)(KernelAttribute attribute, int value, KernelHandle kernel,
                                 DeviceOrdinal device);
  Result (*launch)(const LaunchConfig* config, FunctionHandle function, void** arguments,
                   void** extra);
  Result (*blocks_per_sm)(int* blocks, FunctionHandle function, int threads,
                          std::size_t shared_bytes);

  // TMA descriptors: 128 bytes, aligned to 64. Null where the driver lacks them.
  Result (*encode_tiled)(void* map, TensorMapType type, std::uint32_t rank, void* address,
                         const std::uint64_t* extents, const std::uint64_t* byte_strides,
                         const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                         TensorMapSwizzle swizzle, int l2_promotion, int fill);
  Result (*encode_im2col)(void* map, TensorMapType type, std::uint32_t rank, void* address,
                          const std::uint64_t* extents, const std::uint64_t* byte_strides,
                          const int* lower, const int* upper, std::uint32_t channels,
                          std::uint32_t pixels, const std::uint32_t* steps, int interleave,
                          TensorMapSwizzle swizzle, int l2_promotion, int fill);
  Result (*replace_address)(void* map, void* address);

  Result (*allocate)(DeviceAddress* address, std::size_t bytes);
  Result (*release)(DeviceAddress address);
  Result (*copy_to_device)(DeviceAddress to, const void* from, std::size_t bytes,
                           StreamHandle stream);
  Result (*copy_to_host)(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream);
  Result (*copy_on_device)(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                           StreamHandle stream);
  Result (*fill_bytes)(DeviceAddress to, unsigned char value, std::size_t bytes,
                       StreamHandle stream);
  Result (*fill_words)(DeviceAddress to, unsigned value, std::size_t words, StreamHandle stream);
  Result (*allocate_host)(void** memory, std::size_t bytes, unsigned flags);
  Result (*release_host)(void* memory);

  Result (*create_stream)(StreamHandle* stream, unsigned flags);
  Result (*destroy_stream)(StreamHandle stream);
  Result (*synchronize_stream)(StreamHandle stream);
  Result (*stream_context)(StreamHandle stream, ContextHandle* context);
  Result (*wait_event)(StreamHandle stream, EventHandle event, unsigned flags);
  Result (*call_host)(StreamHandle stream, void (*function)(void*), void* data);
  Result (*is_capturing)(StreamHandle stream, int* status);  // 0: no
  Result (*begin_capture)(StreamHandle stream, int mode);
  Result (*end_capture)(StreamHandle stream, GraphHandle* graph);
  Result (*create_event)(EventHandle* event, unsigned flags);
  Result (*destroy_event)(EventHandle event);
  Result (*record_event)(EventHandle event, StreamHandle stream);
  Result (*synchronize_event)(EventHandle event);
  Result (*elapsed_milliseconds)(float* milliseconds, EventHandle first, EventHandle second);

  Result (*create_graph)(GraphHandle* graph, unsigned flags);
  Result (*instantiate_graph)(GraphExecHandle* exec, GraphHandle graph, std::uint64_t flags);
  Result (*launch_graph)(GraphExecHandle exec, StreamHandle stream);
  Result (*destroy_graph)(GraphHandle graph);
  Result (*destroy_graph_exec)(GraphExecHandle exec);
};

// The result of opening the driver.
struct Driver {
  const DriverApi* api = nullptr;  // null: unusable,
  std::string reason;              // for this reason
  std::string path;                // of the library
  int version = 0;
  int devices = 0;
};
// Opened on first use; the process may have no driver at all.
const Driver& driver();
// The API; throws Error(device) with the reason when there is none.
const DriverApi& driver_api();

// Throws Error on failure; `what` names the operation.
void check(Result result, const char* what);
std::string describe(Result result);

}  // namespace ashlar::cuda
