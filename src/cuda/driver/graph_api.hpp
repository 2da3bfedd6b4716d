// The part of the CUDA driver API for CUDA graph nodes, declared from its documentation.
#pragma once

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

enum class GraphNodeType : int { kernel = 0, copy = 1, fill = 2, host_call = 3 };

struct KernelNode {
  FunctionHandle function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  KernelHandle kernel = nullptr;  // used where function is null
  ContextHandle context = nullptr;
};
// A 3D copy. Copies of a plan are linear: width_bytes bytes, one row of one plane.
struct CopyNode {
  struct Side {
    std::size_t x_bytes = 0, y = 0, z = 0, level = 0;
    int memory_type = 0;  // 1: host, 2: device, 4: unified address
    void* host = nullptr;
    DeviceAddress device = 0;
    void *array = nullptr, *reserved = nullptr;
    std::size_t pitch = 0, height = 0;
  };
  Side from, to;
  std::size_t width_bytes = 0, height = 0, depth = 0;
};
struct FillNode {
  DeviceAddress to = 0;
  std::size_t pitch = 0;
  unsigned value = 0, element_bytes = 1;
  std::size_t width = 0, height = 0;
};
struct HostNode {
  void (*function)(void*) = nullptr;
  void* data = nullptr;
};

struct GraphApi {
  Result (*nodes)(GraphHandle graph, GraphNodeHandle* nodes, std::size_t* count);
  Result (*roots)(GraphHandle graph, GraphNodeHandle* nodes, std::size_t* count);
  Result (*dependents)(GraphNodeHandle node, GraphNodeHandle* nodes, std::size_t* count);
  Result (*type)(GraphNodeHandle node, GraphNodeType* type);

  Result (*add_kernel)(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                       std::size_t after_count, const KernelNode* what);
  Result (*get_kernel)(GraphNodeHandle node, KernelNode* what);
  Result (*set_kernel)(GraphNodeHandle node, const KernelNode* what);
  Result (*copy_attributes)(GraphNodeHandle to, GraphNodeHandle from);  // kernel nodes only

  Result (*add_copy)(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                     std::size_t after_count, const CopyNode* what, ContextHandle context);
  Result (*get_copy)(GraphNodeHandle node, CopyNode* what);
  Result (*set_copy)(GraphNodeHandle node, const CopyNode* what);

  Result (*add_fill)(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                     std::size_t after_count, const FillNode* what, ContextHandle context);
  Result (*get_fill)(GraphNodeHandle node, FillNode* what);
  Result (*set_fill)(GraphNodeHandle node, const FillNode* what);

  Result (*add_host)(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                     std::size_t after_count, const HostNode* what);
  Result (*get_host)(GraphNodeHandle node, HostNode* what);
  Result (*set_host)(GraphNodeHandle node, const HostNode* what);
};
// Loaded on first use; throws Error(device) without a driver or where a function is missing.
const GraphApi& graph_api();

}  // namespace ashlar::cuda
