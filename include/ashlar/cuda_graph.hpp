// A plan's kernels as nodes of a CUDA graph, for programs that construct CUDA graphs explicitly.
// Programs that use stream capture need nothing of this: Plan::run can be captured from its first
// call on.
#pragma once

#include <ashlar/plan.hpp>

namespace ashlar {

// Adds one run of the plan to `cuda_graph`, an empty CUgraph (or cudaGraph_t), as a linear chain of
// nodes without child graphs. Pointers and workspace are those of Plan::run; the values of scalar
// tensors are read during this call. The plan must outlive the graph and everything instantiated
// from it.
//
// A plan with owned memory (Plan::owned_bytes() > 0) supports one graph at a time: launches of its
// graphs and other runs of the plan must not overlap. The same holds for plans that run a region on
// the CPU ("cuda.host" in explain()).
//
// Throws Error(invalid_argument) for a plan that is not for CUDA, Error(device) for driver errors.
void populate(void* cuda_graph, const Plan& plan, std::span<void* const> pointers,
              void* workspace = nullptr);
void populate(void* cuda_graph, const Plan& plan, const Binding& binding,
              void* workspace = nullptr);

// Replaces pointers, workspace and scalar values in a graph that this plan populated. Bring
// existing executable graphs up to date with cuGraphExecUpdate; it always succeeds, because the
// topology does not change.
void update(void* cuda_graph, const Plan& plan, std::span<void* const> pointers,
            void* workspace = nullptr);
void update(void* cuda_graph, const Plan& plan, const Binding& binding, void* workspace = nullptr);

}  // namespace ashlar
