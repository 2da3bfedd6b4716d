// CUDA graphs of the emulated driver. Nodes run in insertion order, which is a topological order.
#include <algorithm>
#include <cstring>

#include "memory.hpp"
#include "objects.hpp"

namespace emulated {

namespace {

// Null where the range is not inside one allocation.
char* place(const CopyNode::Side& side, std::size_t bytes) {
  if (side.memory_type == 1) return static_cast<char*>(side.host);
  return is_inside(side.device, bytes) ? reinterpret_cast<char*>(side.device) : nullptr;
}

Result copy_bytes(const CopyNode& what) {
  char* to = place(what.to, what.width_bytes);
  const char* from = place(what.from, what.width_bytes);
  if (to == nullptr || from == nullptr) return Result::invalid_value;
  std::memmove(to, from, what.width_bytes);
  return Result::success;
}

Result fill_bytes(const FillNode& what) {
  if (!is_inside(what.to, what.width * what.element_bytes)) return Result::invalid_value;
  for (std::size_t i = 0; i < what.width; ++i)
    std::memcpy(reinterpret_cast<char*>(what.to) + i * what.element_bytes, &what.value,
                what.element_bytes);
  return Result::success;
}

Result list(const std::vector<GraphNodeHandle>& found, GraphNodeHandle* nodes, std::size_t* count) {
  if (nodes != nullptr) std::copy_n(found.begin(), std::min(*count, found.size()), nodes);
  *count = found.size();
  return Result::success;
}

Result add(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
           std::size_t count, GraphNodeObject what) {
  what.after.assign(after, after + count);
  what.graph = graph;
  graph->nodes.push_back(std::make_unique<GraphNodeObject>(std::move(what)));
  *node = graph->nodes.back().get();
  return Result::success;
}

}  // namespace

Result perform(const GraphNodeObject& node) {
  switch (node.type) {
    case GraphNodeType::kernel: return launch(node);
    case GraphNodeType::copy: return copy_bytes(node.copy);
    case GraphNodeType::fill: return fill_bytes(node.fill);
    case GraphNodeType::host_call: node.host.function(node.host.data); return Result::success;
  }
  return node.other();
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuGraphCreate(GraphHandle* graph, unsigned) {
  *graph = new GraphObject{};
  return Result::success;
}
Result cuGraphDestroy(GraphHandle graph) {
  delete graph;
  return Result::success;
}
Result cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, std::uint64_t) {
  *exec = new GraphExecObject{};
  for (const auto& node : graph->nodes) (*exec)->nodes.push_back(*node);
  return Result::success;
}
Result cuGraphExecDestroy(GraphExecHandle exec) {
  delete exec;
  return Result::success;
}
Result cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  const auto run = [nodes = exec->nodes] {
    for (const GraphNodeObject& node : nodes)
      if (const Result result = perform(node); result != Result::success) return result;
    return Result::success;
  };
  return submit(stream, {.type = kOtherNode, .other = run});
}

Result cuGraphGetNodes(GraphHandle graph, GraphNodeHandle* nodes, std::size_t* count) {
  std::vector<GraphNodeHandle> found;
  for (const auto& node : graph->nodes) found.push_back(node.get());
  return list(found, nodes, count);
}
Result cuGraphGetRootNodes(GraphHandle graph, GraphNodeHandle* nodes, std::size_t* count) {
  std::vector<GraphNodeHandle> found;
  for (const auto& node : graph->nodes)
    if (node->after.empty()) found.push_back(node.get());
  return list(found, nodes, count);
}
Result cuGraphNodeGetDependentNodes(GraphNodeHandle node, GraphNodeHandle* nodes,
                                    std::size_t* count) {
  std::vector<GraphNodeHandle> found;
  for (const auto& other : node->graph->nodes)
    if (std::count(other->after.begin(), other->after.end(), node) != 0)
      found.push_back(other.get());
  return list(found, nodes, count);
}
Result cuGraphNodeGetType(GraphNodeHandle node, GraphNodeType* type) {
  *type = node->type;
  return Result::success;
}

// --- node parameters

Result cuGraphKernelNodeGetParams_v2(GraphNodeHandle node, KernelNode* what) {
  if (node->type != GraphNodeType::kernel) return Result::invalid_value;
  node->argument_pointers.clear();
  for (std::vector<char>& argument : node->arguments)
    node->argument_pointers.push_back(argument.data());
  *what = node->kernel;
  what->arguments = node->argument_pointers.data();
  return Result::success;
}
Result cuGraphKernelNodeSetParams_v2(GraphNodeHandle node, const KernelNode* what) {
  if (node->type != GraphNodeType::kernel || what->function == nullptr)
    return Result::invalid_value;
  node->kernel = *what;
  take_arguments(*node);
  return Result::success;
}
Result cuGraphKernelNodeCopyAttributes(GraphNodeHandle to, GraphNodeHandle from) {
  if (to->type != from->type) return Result::invalid_value;
  to->is_cooperative = from->is_cooperative;
  to->cluster = from->cluster;
  return Result::success;
}
Result cuGraphAddKernelNode_v2(GraphNodeHandle* node, GraphHandle graph,
                               const GraphNodeHandle* after, std::size_t count,
                               const KernelNode* what) {
  add(node, graph, after, count, {.type = GraphNodeType::kernel});
  return cuGraphKernelNodeSetParams_v2(*node, what);
}

Result cuGraphMemcpyNodeGetParams(GraphNodeHandle node, CopyNode* what) {
  *what = node->copy;
  return node->type == GraphNodeType::copy ? Result::success : Result::invalid_value;
}
Result cuGraphMemcpyNodeSetParams(GraphNodeHandle node, const CopyNode* what) {
  node->copy = *what;
  return node->type == GraphNodeType::copy ? Result::success : Result::invalid_value;
}
Result cuGraphAddMemcpyNode(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                            std::size_t count, const CopyNode* what, ContextHandle) {
  return add(node, graph, after, count, {.type = GraphNodeType::copy, .copy = *what});
}

Result cuGraphMemsetNodeGetParams(GraphNodeHandle node, FillNode* what) {
  *what = node->fill;
  return node->type == GraphNodeType::fill ? Result::success : Result::invalid_value;
}
Result cuGraphMemsetNodeSetParams(GraphNodeHandle node, const FillNode* what) {
  node->fill = *what;
  return node->type == GraphNodeType::fill ? Result::success : Result::invalid_value;
}
Result cuGraphAddMemsetNode(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                            std::size_t count, const FillNode* what, ContextHandle) {
  return add(node, graph, after, count, {.type = GraphNodeType::fill, .fill = *what});
}

Result cuGraphHostNodeGetParams(GraphNodeHandle node, HostNode* what) {
  *what = node->host;
  return node->type == GraphNodeType::host_call ? Result::success : Result::invalid_value;
}
Result cuGraphHostNodeSetParams(GraphNodeHandle node, const HostNode* what) {
  node->host = *what;
  return node->type == GraphNodeType::host_call ? Result::success : Result::invalid_value;
}
Result cuGraphAddHostNode(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                          std::size_t count, const HostNode* what) {
  return add(node, graph, after, count, {.type = GraphNodeType::host_call, .host = *what});
}

}  // extern "C"

EMULATES(cuGraphCreate, create_graph);
EMULATES(cuGraphInstantiateWithFlags, instantiate_graph);
EMULATES(cuGraphLaunch, launch_graph);
EMULATES(cuGraphDestroy, destroy_graph);
EMULATES(cuGraphExecDestroy, destroy_graph_exec);
EMULATES_FOR_GRAPHS(cuGraphGetNodes, nodes);
EMULATES_FOR_GRAPHS(cuGraphGetRootNodes, roots);
EMULATES_FOR_GRAPHS(cuGraphNodeGetDependentNodes, dependents);
EMULATES_FOR_GRAPHS(cuGraphNodeGetType, type);
EMULATES_FOR_GRAPHS(cuGraphAddKernelNode_v2, add_kernel);
EMULATES_FOR_GRAPHS(cuGraphKernelNodeGetParams_v2, get_kernel);
EMULATES_FOR_GRAPHS(cuGraphKernelNodeSetParams_v2, set_kernel);
EMULATES_FOR_GRAPHS(cuGraphKernelNodeCopyAttributes, copy_attributes);
EMULATES_FOR_GRAPHS(cuGraphAddMemcpyNode, add_copy);
EMULATES_FOR_GRAPHS(cuGraphMemcpyNodeGetParams, get_copy);
EMULATES_FOR_GRAPHS(cuGraphMemcpyNodeSetParams, set_copy);
EMULATES_FOR_GRAPHS(cuGraphAddMemsetNode, add_fill);
EMULATES_FOR_GRAPHS(cuGraphMemsetNodeGetParams, get_fill);
EMULATES_FOR_GRAPHS(cuGraphMemsetNodeSetParams, set_fill);
EMULATES_FOR_GRAPHS(cuGraphAddHostNode, add_host);
EMULATES_FOR_GRAPHS(cuGraphHostNodeGetParams, get_host);
EMULATES_FOR_GRAPHS(cuGraphHostNodeSetParams, set_host);
