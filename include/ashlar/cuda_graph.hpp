// A plan's work as nodes of a CUDA graph, for programs that build graphs by hand. Plan::run on a
// stream that is being captured does the same for everybody else, from the first run on.
#pragma once

#include <ashlar/plan.hpp>

namespace ashlar {

// Adds one run of the plan to `cuda_graph`, a CUgraph (or cudaGraph_t) without nodes, as nodes one
// after the other, none of them a child graph. Pointers and workspace are what Plan::run takes; the
// numbers of scalar tensors are read now. The plan has to outlive everything made of the graph.
//
// A plan with memory of its own (Plan::owned_bytes) has it for one graph at a time: launches of its
// graphs, and other runs of it, must not overlap. The same holds for plans that ask the processor
// for a region ("cuda.host" in explain()).
//
// Throw Error(invalid_argument) for a plan of another kind of device, Error(device) for what the
// driver refuses.
void populate(void* cuda_graph, const Plan& plan, std::span<void* const> pointers,
              void* workspace = nullptr);
void populate(void* cuda_graph, const Plan& plan, const Binding& binding,
              void* workspace = nullptr);

// Puts other pointers, workspace and scalar values into a graph that this plan populated. What was
// instantiated from the graph before is brought up to date by cuGraphExecUpdate, which always
// succeeds: neither the nodes nor their order change.
void update(void* cuda_graph, const Plan& plan, std::span<void* const> pointers,
            void* workspace = nullptr);
void update(void* cuda_graph, const Plan& plan, const Binding& binding, void* workspace = nullptr);

}  // namespace ashlar
