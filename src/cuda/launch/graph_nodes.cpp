// Captures the run on a private stream and adds the captured nodes to the caller's graph, or copies
// their parameters into existing nodes: works without child graphs on the oldest supported driver.
#include "cuda/launch/graph_nodes.hpp"

#include <vector>

#include "base/fail.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/graph_api.hpp"
#include "cuda/driver/private_capture.hpp"

namespace ashlar::cuda {

namespace {

constexpr const char* kWhat = "building a CUDA graph";

template <class Ask>
std::vector<GraphNodeHandle> all_nodes(Ask ask) {
  std::size_t count = 0;
  check(ask(nullptr, &count), kWhat);
  std::vector<GraphNodeHandle> nodes(count);
  if (count > 0) check(ask(nodes.data(), &count), kWhat);
  return nodes;
}

// The nodes in execution order; empty where the graph is not a single chain.
std::vector<GraphNodeHandle> chain_of(GraphHandle graph) {
  const GraphApi& api = graph_api();
  std::vector<GraphNodeHandle> chain, next = all_nodes([&](GraphNodeHandle*nodes, auto*count) {
                                        return api.roots(graph, nodes, count);
                                      });
  while (next.size() == 1) {
    chain.push_back(next[0]);
    next = all_nodes([&](GraphNodeHandle* nodes, auto* count) {
      return api.dependents(chain.back(), nodes, count);
    });
  }
  return next.empty() ? chain : std::vector<GraphNodeHandle>{};
}

GraphNodeType type_of(GraphNodeHandle node) {
  GraphNodeType type{};
  check(graph_api().type(node, &type), kWhat);
  return type;
}

GraphNodeHandle add_like(GraphNodeHandle source, GraphHandle graph, GraphNodeHandle after) {
  const GraphApi& api = graph_api();
  const std::size_t count = after != nullptr ? 1 : 0;
  GraphNodeHandle node = nullptr;
  ContextHandle context = nullptr;
  check(driver_api().current_context(&context), kWhat);
  switch (type_of(source)) {
    case GraphNodeType::kernel: {
      KernelNode what{};
      check(api.get_kernel(source, &what), kWhat);
      check(api.add_kernel(&node, graph, &after, count, &what), kWhat);
      check(api.copy_attributes(node, source), kWhat);
      return node;
    }
    case GraphNodeType::copy: {
      CopyNode what{};
      check(api.get_copy(source, &what), kWhat);
      check(api.add_copy(&node, graph, &after, count, &what, context), kWhat);
      return node;
    }
    case GraphNodeType::fill: {
      FillNode what{};
      check(api.get_fill(source, &what), kWhat);
      check(api.add_fill(&node, graph, &after, count, &what, context), kWhat);
      return node;
    }
    case GraphNodeType::host_call: {
      HostNode what{};
      check(api.get_host(source, &what), kWhat);
      check(api.add_host(&node, graph, &after, count, &what), kWhat);
      return node;
    }
  }
  fail(ErrorCode::internal, "cuda: the captured run has a graph node of type {}, expected 0 to 3",
       static_cast<int>(type_of(source)));
}

void set_like(GraphNodeHandle source, GraphNodeHandle target) {
  const GraphApi& api = graph_api();
  switch (type_of(source)) {
    case GraphNodeType::kernel: {
      KernelNode what{};
      check(api.get_kernel(source, &what), kWhat);
      return check(api.set_kernel(target, &what), kWhat);
    }
    case GraphNodeType::copy: {
      CopyNode what{};
      check(api.get_copy(source, &what), kWhat);
      return check(api.set_copy(target, &what), kWhat);
    }
    case GraphNodeType::fill: {
      FillNode what{};
      check(api.get_fill(source, &what), kWhat);
      return check(api.set_fill(target, &what), kWhat);
    }
    case GraphNodeType::host_call: {
      HostNode what{};
      check(api.get_host(source, &what), kWhat);
      return check(api.set_host(target, &what), kWhat);
    }
  }
}

}  // namespace

void populate_graph(GraphHandle graph, DeviceOrdinal device,
                    const std::function<void(void* stream)>& run) {
  const ContextScope scope(device);
  std::size_t nodes = 0;
  check(graph_api().nodes(graph, nullptr, &nodes), kWhat);
  if (nodes > 0)
    fail(ErrorCode::invalid_argument, "populate: got a graph of {} nodes, expected an empty one",
         nodes);
  const CapturedGraph captured(run);
  GraphNodeHandle last = nullptr;
  for (const GraphNodeHandle source : chain_of(captured.handle()))
    last = add_like(source, graph, last);
}

void update_graph(GraphHandle graph, DeviceOrdinal device,
                  const std::function<void(void* stream)>& run) {
  const ContextScope scope(device);
  const CapturedGraph captured(run);
  const std::vector<GraphNodeHandle> sources = chain_of(captured.handle()),
                                     targets = chain_of(graph);
  bool same = sources.size() == targets.size();
  for (std::size_t i = 0; same && i < sources.size(); ++i)
    same = type_of(sources[i]) == type_of(targets[i]);
  if (!same)
    fail(ErrorCode::invalid_argument,
         "update: got a graph of {} nodes, expected the {} nodes of this plan", targets.size(),
         sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) set_like(sources[i], targets[i]);
}

}  // namespace ashlar::cuda
