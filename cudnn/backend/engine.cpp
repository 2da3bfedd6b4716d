#include "backend/engine.hpp"

#include <ashlar/device.hpp>

#include "backend/device_prop.hpp"
#include "backend/finalize.hpp"
#include "core/failure.hpp"

namespace ashlar::cudnn {

namespace {

// Clients hard-code global indices of NVIDIA's engines (cudnn-frontend: 5 and 17, deterministic
// attention backward). An index below this bound that is not one of our strategies selects a
// deterministic plan.
constexpr std::int64_t kMaxForeignEngines = 256;

AttributeValue numerical_notes(const PlanNotes& notes) {
  std::vector<std::int64_t> list;
  if (notes.tf32 || notes.truncating_accumulation) list.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  if (notes.reduced_precision_accumulation)
    list.push_back(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (!notes.deterministic) list.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  if (notes.winograd > 0) list.push_back(CUDNN_NUMERICAL_NOTE_WINOGRAD);
  // F(m, 3): an output tile of m pixels reads m + 2, and the note names the input tile.
  if (notes.winograd == 2) list.push_back(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
  if (notes.winograd == 4) list.push_back(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
  return list;
}

AttributeValue behavior_notes(const Outline& outline, const Device& device) {
  std::vector<std::int64_t> list;
  // cudnnBackendPopulateCudaGraph fails for plans of the CPU.
  if (device.props().kind == DeviceKind::cuda)
    list.push_back(CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
  if (outline.notes.runtime_compiled) list.push_back(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  for (const std::string& engine : outline.engines)
    if (engine == "cuda.cublaslt") {
      list.push_back(CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY);
      break;
    }
  return list;
}

RecordRef workspace_knob_info() {
  auto record = std::make_shared<Record>();
  record->type = CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR;
  record->finished = attributes_only();
  const auto set = [&](cudnnBackendAttributeName_t name, std::int64_t value) {
    record->attributes[name] = std::vector<std::int64_t>{value};
  };
  set(CUDNN_ATTR_KNOB_INFO_TYPE, kWorkspaceKnob);
  set(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, 0);
  set(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, 1);
  set(CUDNN_ATTR_KNOB_INFO_STRIDE, 1);
  return record;
}

}  // namespace

Device device_for(const Record* device_prop, const OperationGraph& graph, std::int64_t sm_count) {
  DeviceProps props = device_prop != nullptr ? finished<DeviceProp>(*device_prop).device.props()
                      : graph.device         ? graph.device->props()
                                             : Device::current().props();
  if (sm_count > 0 && sm_count < props.compute_units)
    props.compute_units = static_cast<int>(sm_count);
  return Device(props);
}

std::optional<AttributeValue> Engine::computed(cudnnBackendAttributeName_t name) const {
  switch (name) {
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return numerical_notes(strategy.outline.notes);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: return behavior_notes(strategy.outline, device);
    case CUDNN_ATTR_ENGINE_KNOB_INFO: return std::vector<RecordRef>{workspace_knob_info()};
    case CUDNN_ATTR_ENGINE_LAYOUT_INFO: return std::vector<RecordRef>{};  // no layout requirements
    default: return {};
  }
}

FinishedRef finalize_engine(const Record& record) {
  auto engine = std::make_shared<Engine>();
  engine->graph_record = record.reference(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  const OperationGraph& graph = engine->operation_graph();
  engine->device = device_for(record.record_or_null(CUDNN_ATTR_ENGINE_DEVICEPROP), graph,
                              record.integer_or(CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, 0));
  const std::int64_t index = record.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  std::vector<Strategy> strategies = list_strategies(graph.graph, engine->device);
  const auto count = static_cast<std::int64_t>(strategies.size());
  if (index < 0 || index >= kMaxForeignEngines)
    fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
         "CUDNN_ATTR_ENGINE_GLOBAL_INDEX: got {}, expected 0 to {}", index, count - 1);
  if (index < count) {
    engine->strategy = std::move(strategies[static_cast<std::size_t>(index)]);
  } else {
    engine->strategy.label = "deterministic";
    engine->strategy.options.deterministic = true;
    engine->strategy.outline = outline(graph.graph, engine->device, engine->strategy.options);
  }
  return engine;
}

RecordRef make_engine_record(RecordRef graph, std::int64_t index, const Device& device,
                             Strategy strategy) {
  auto record = std::make_shared<Record>();
  record->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  record->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = std::vector{graph};
  record->attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = std::vector<std::int64_t>{index};
  auto engine = std::make_shared<Engine>();
  engine->graph_record = std::move(graph);
  engine->device = device;
  engine->strategy = std::move(strategy);
  record->finished = std::move(engine);
  return record;
}

}  // namespace ashlar::cudnn
