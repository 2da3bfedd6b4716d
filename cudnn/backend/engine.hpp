// ENGINE, ENGINECFG and ENGINEHEUR descriptors.
#pragma once

#include <ashlar/plan.hpp>

#include "backend/operation_graph.hpp"
#include "backend/record.hpp"
#include "backend/strategies.hpp"

namespace ashlar::cudnn {

// One strategy to compile an operation graph for a device.
struct Engine : Finished {
  RecordRef graph_record;  // a finalized OPERATIONGRAPH
  Device device = Device::cpu();
  Strategy strategy;
  const OperationGraph& operation_graph() const { return finished<OperationGraph>(*graph_record); }
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// An engine with its knob choices: everything needed to compile a plan.
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

// The device of a record: its DEVICEPROP, else the device of the graph's handle, else the current
// one. `sm_count` > 0 (SM_COUNT_TARGET) caps the number of SMs that the plan uses.
Device device_for(const Record* device_prop, const OperationGraph& graph, std::int64_t sm_count);

// CUDNN_KNOB_TYPE_WORKSPACE: 1, the plan uses the caller's workspace; 0, it owns its scratch
// memory.
inline constexpr cudnnBackendKnobType_t kWorkspaceKnob = CUDNN_KNOB_TYPE_WORKSPACE;

// Records in the state that a client's create, set and finalize would leave them in.
RecordRef make_engine_record(RecordRef graph, std::int64_t index, const Device& device,
                             Strategy strategy);
RecordRef make_config_record(RecordRef engine, std::int64_t workspace_knob);
// The configuration of strategy `index`, for plans restored from JSON.
RecordRef make_config_record(RecordRef graph, std::int64_t index, const Device& device,
                             std::int64_t workspace_knob);

}  // namespace ashlar::cudnn
