// What the planner does with a graph on a device, and why: regions, engines, candidates, memory.
#pragma once

#include <algorithm>
#include <ashlar/plan.hpp>
#include <ashlar/tune.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

// "matmul"; of a pointwise operation its mode: "relu_fwd".
std::string_view op_label(const Op& op);

// What became of one engine of the device for one region.
struct EngineAttempt {
  std::string engine;  // id
  ComputeMethod method = ComputeMethod::reference;
  bool is_chosen = false;
  bool is_supported = false;        // the engine takes the region, though options may exclude it
  bool is_other_operation = false;  // refused because the engine is for other operations
  std::string outcome;              // "refused: ...", "12.3 us estimated"
};

// A value that passes through memory between two regions although pointwise work computes or
// reads it.
struct RegionBoundary {
  int region = 0;  // the earlier one, a position in Inspection::regions
  TensorId value = -1;
  std::string reason;
};

struct RegionInspection {
  std::string name;                     // "conv_forward + add"
  std::vector<NodeId> nodes;            // of Inspection::graph, in execution order
  std::vector<TensorId> reads, writes;  // memory touched
  std::string engine;                   // id; empty where the build has none for the device
  std::string kind;                     // "generic fusion", ...
  std::string config;                   // "rows=64 columns=256"
  ComputeMethod method = ComputeMethod::reference;
  double seconds = 0;  // estimated, or measured by tuning
  std::int64_t scratch_bytes = 0;
  // The roofline: arithmetic at the device's peak for the region's dtypes, every tensor read and
  // written once at the device's memory bandwidth. Masked attention scores do not count.
  double flops = 0, bytes = 0;
  double peak_flops = 0;  // per second
  double arithmetic_seconds = 0, memory_seconds = 0;
  double roofline_seconds() const { return std::max(arithmetic_seconds, memory_seconds); }
  std::vector<EngineAttempt> attempts;     // every engine of the device, in the order tried
  std::vector<RegionBoundary> boundaries;  // with earlier regions
  // Only if InspectDetail asks for it:
  std::vector<Trial> candidates;  // what tuning would time, cheapest by estimate first
  std::int64_t shared_bytes = 0;  // dynamic shared memory per CTA of a GPU kernel, at most
};

struct Inspection {
  Graph graph;                        // rewritten: the nodes that regions hold
  int operations = 0;                 // nodes of the graph as it was given
  std::vector<std::string> rewrites;  // what was changed, a sentence each
  // By tensor of `graph`: the tensor that owns its memory, itself unless it is a view (of a
  // transpose, slice, reshape). What regions read and write are owners.
  std::vector<TensorId> storage;
  std::vector<RegionInspection> regions;  // in execution order
  DeviceProps device;
  PlanNotes notes;
  std::int64_t workspace_bytes = 0, owned_bytes = 0;  // Plan::workspace_size() and owned_bytes()

  double seconds() const;                    // of all regions
  const RegionInspection* heaviest() const;  // of the largest estimated time; null without regions
  std::int64_t shared_bytes() const;         // the most of any region; 0 on the CPU
  std::string to_text() const;               // what explain() prints
};

// What takes longer to find out.
struct InspectDetail {
  bool candidates = false;
  bool shared_memory = false;
};

// For a device that need not be present. Compiles no GPU kernel, unless CompileOptions::tune times
// them. Plan::inspect() describes a compiled plan. Throws Error(invalid_graph) where compile()
// does.
Inspection inspect(const Graph& graph, const Device& device, const CompileOptions& options = {},
                   const InspectDetail& detail = {});

#pragma GCC visibility pop

}  // namespace ashlar
