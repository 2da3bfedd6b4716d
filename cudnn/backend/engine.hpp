// Engines, their configurations and the heuristics that list them.
#pragma once

#include <ashlar/plan.hpp>

#include "backend/operation_graph.hpp"
#include "backend/record.hpp"
#include "backend/ways.hpp"

namespace ashlar::cudnn {

// One way to compile an operation graph for a device.
struct Engine : Finished {
  RecordRef graph_record;  // a finalized OPERATIONGRAPH
  Device device = Device::cpu();
  Way way;
  const OperationGraph& operation_graph() const { return finished<OperationGraph>(*graph_record); }
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// An engine with its knobs chosen: all that a plan is made from.
struct EngineConfig : Finished {
  RecordRef engine_record;  // a finalized ENGINE
  CompileOptions options;
  const Engine& engine() const { return finished<Engine>(*engine_record); }
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// Configurations for a graph, best first.
struct Heuristics : Finished {
  std::vector<RecordRef> results;  // finalized ENGINECFGs
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// The device that a record asks for: by its DEVICEPROP, else that of the graph's handle, else the
// current one. `multiprocessors` > 0 leaves only so many of them to the plan.
Device device_for(const Record* device_prop, const OperationGraph& graph, std::int64_t sm_count);

// CUDNN_KNOB_TYPE_WORKSPACE: 1, the plan works in memory of the caller; 0, in memory of its own.
inline constexpr cudnnBackendKnobType_t kWorkspaceKnob = CUDNN_KNOB_TYPE_WORKSPACE;

// Records as a client would make and finalize them.
RecordRef make_engine_record(RecordRef graph, std::int64_t index, const Device& device, Way way);
RecordRef make_config_record(RecordRef engine, std::int64_t workspace_knob);
// A configuration of the way of that number, for plans that come back from JSON.
RecordRef make_config_record(RecordRef graph, std::int64_t index, const Device& device,
                             std::int64_t workspace_knob);

}  // namespace ashlar::cudnn
