// Plans as nodes of explicitly constructed CUDA graphs.
#include <ashlar/plan.hpp>

#include "base/fail.hpp"
#include "cuda/launch/graph_nodes.hpp"

namespace ashlar {

namespace {

using Change = void (*)(cuda::GraphHandle, cuda::DeviceOrdinal,
                        const std::function<void(void* stream)>&);

template <class Pointers>
void apply(const char* name, Change change, void* graph, const Plan& plan, const Pointers& pointers,
           void* workspace) {
  if (graph == nullptr)
    fail(ErrorCode::invalid_argument, "{}: got null, expected a CUDA graph", name);
  if (plan.device().kind != DeviceKind::cuda)
    fail(ErrorCode::invalid_argument, "{}: got a plan for '{}', expected one for a GPU", name,
         plan.device().name);
  change(static_cast<cuda::GraphHandle>(graph), plan.device().ordinal,
         [&](void* stream) { plan.run(pointers, workspace, stream); });
}

}  // namespace

void Plan::populate_cuda_graph(void* cuda_graph, std::span<void* const> pointers,
                               void* workspace) const {
  apply("populate_cuda_graph", cuda::populate_graph, cuda_graph, *this, pointers, workspace);
}
void Plan::populate_cuda_graph(void* cuda_graph, const Binding& binding, void* workspace) const {
  apply("populate_cuda_graph", cuda::populate_graph, cuda_graph, *this, binding, workspace);
}
void Plan::update_cuda_graph(void* cuda_graph, std::span<void* const> pointers,
                             void* workspace) const {
  apply("update_cuda_graph", cuda::update_graph, cuda_graph, *this, pointers, workspace);
}
void Plan::update_cuda_graph(void* cuda_graph, const Binding& binding, void* workspace) const {
  apply("update_cuda_graph", cuda::update_graph, cuda_graph, *this, binding, workspace);
}

}  // namespace ashlar
