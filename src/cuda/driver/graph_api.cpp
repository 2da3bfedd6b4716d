#include "cuda/driver/graph_api.hpp"

#include "base/fail.hpp"
#include "base/shared_library.hpp"

namespace ashlar::cuda {

namespace {

struct OpenedGraphApi {
  GraphApi api{};
  const char* missing = nullptr;
};

OpenedGraphApi open_graph_api() {
  OpenedGraphApi opened;
  const SharedLibrary library = SharedLibrary::open(driver().path);
  const auto load = [&](auto*& function, const char* name) {
    if (!library.load(function, name) && opened.missing == nullptr) opened.missing = name;
  };
  GraphApi& api = opened.api;
  load(api.nodes, "cuGraphGetNodes");
  load(api.roots, "cuGraphGetRootNodes");
  load(api.dependents, "cuGraphNodeGetDependentNodes");
  load(api.type, "cuGraphNodeGetType");
  load(api.add_kernel, "cuGraphAddKernelNode_v2");
  load(api.get_kernel, "cuGraphKernelNodeGetParams_v2");
  load(api.set_kernel, "cuGraphKernelNodeSetParams_v2");
  load(api.copy_attributes, "cuGraphKernelNodeCopyAttributes");
  load(api.add_copy, "cuGraphAddMemcpyNode");
  load(api.get_copy, "cuGraphMemcpyNodeGetParams");
  load(api.set_copy, "cuGraphMemcpyNodeSetParams");
  load(api.add_fill, "cuGraphAddMemsetNode");
  load(api.get_fill, "cuGraphMemsetNodeGetParams");
  load(api.set_fill, "cuGraphMemsetNodeSetParams");
  load(api.add_host, "cuGraphAddHostNode");
  load(api.get_host, "cuGraphHostNodeGetParams");
  load(api.set_host, "cuGraphHostNodeSetParams");
  return opened;
}

}  // namespace

const GraphApi& graph_api() {
  driver_api();  // throws without a driver
  static const OpenedGraphApi opened = open_graph_api();
  if (opened.missing != nullptr)
    fail(ErrorCode::device, "cuda: the NVIDIA driver is too old for CUDA graphs: it has no {}",
         opened.missing);
  return opened.api;
}

}  // namespace ashlar::cuda
