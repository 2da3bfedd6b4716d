// populate() and update(): plans as nodes of explicitly constructed CUDA graphs.
#include <ashlar/cuda_graph.hpp>

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

void populate(void* cuda_graph, const Plan& plan, std::span<void* const> pointers,
              void* workspace) {
  apply("populate", cuda::populate_graph, cuda_graph, plan, pointers, workspace);
}
void populate(void* cuda_graph, const Plan& plan, const Binding& binding, void* workspace) {
  apply("populate", cuda::populate_graph, cuda_graph, plan, binding, workspace);
}
void update(void* cuda_graph, const Plan& plan, std::span<void* const> pointers, void* workspace) {
  apply("update", cuda::update_graph, cuda_graph, plan, pointers, workspace);
}
void update(void* cuda_graph, const Plan& plan, const Binding& binding, void* workspace) {
  apply("update", cuda::update_graph, cuda_graph, plan, binding, workspace);
}

}  // namespace ashlar
