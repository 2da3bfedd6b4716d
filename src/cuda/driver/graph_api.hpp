// The part of NVIDIA's driver interface that looks into CUDA graphs, declared from its
// documentation.
#pragma once

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

enum class GraphNodeType : int { kernel = 0, copy = 1, fill = 2, host_call = 3 };

struct KernelNode {
  FunctionHandle function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
  KernelHandle kernel;  // where there is no function
  ContextHandle context;
};
// Between arrays of up to three dimensions. Copies of a plan are bytes in a row: width_bytes of
// them, one row of one plane.
struct CopyNode {
  struct Side {
    std::size_t x_bytes, y, z, level;
    int memory_type;  // 1: of the host, 2: of the device, 4: wherever the device address points
    void* host;
    DeviceAddress device;
    void *array, *reserved;
    std::size_t pitch, height;
  } from, to;
  std::size_t width_bytes, height, depth;
};
struct FillNode {
  DeviceAddress to;
  std::size_t pitch;
  unsigned value, element_bytes;
  std::size_t width, height;
};
struct HostNode {
  void (*function)(void*);
  void* data;
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
  Result (*copy_attributes)(GraphNodeHandle to, GraphNodeHandle from);  // of kernel nodes

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
// Opened on first use; throws Error(device) when there is no driver or it lacks something.
const GraphApi& graph_api();

}  // namespace ashlar::cuda
