// ENGINECFG descriptors: an engine with its knob choices.
#include "backend/engine.hpp"
#include "backend/finalize.hpp"
#include "core/failure.hpp"
#include "core/plan_cache.hpp"

namespace ashlar::cudnn {

namespace {

RecordRef knob_choice(std::int64_t value) {
  auto record = std::make_shared<Record>();
  record->type = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
  record->finished = attributes_only();
  record->attributes[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE] = std::vector<std::int64_t>{kWorkspaceKnob};
  record->attributes[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE] = std::vector<std::int64_t>{value};
  return record;
}

CompileOptions with_knob(CompileOptions options, std::int64_t workspace_knob) {
  if (workspace_knob == 0) options.workspace_limit = 0;
  return options;
}

// The value of the only knob, CUDNN_KNOB_TYPE_WORKSPACE. Knobs of NVIDIA's engines are accepted and
// ignored, because clients carry them over.
std::int64_t chosen_workspace_knob(const Record& record) {
  std::int64_t value = 1;
  for (const RecordRef& choice : record.records(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    if (choice->integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) != kWorkspaceKnob) continue;
    value = choice->integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    if (value != 0 && value != 1)
      fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
           "CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: got CUDNN_KNOB_TYPE_WORKSPACE = {}, expected 0 or 1",
           value);
  }
  return value;
}

}  // namespace

std::optional<AttributeValue> EngineConfig::computed(cudnnBackendAttributeName_t name) const {
  switch (name) {
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE: {
      const std::int64_t bytes =
          options.workspace_limit == 0 ? 0 : engine().strategy.outline.workspace_size;
      return std::vector<std::int64_t>{bytes};
    }
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return std::vector<std::int64_t>{inspect(engine().operation_graph().graph, engine().device,
                                               options, {.shared_memory = true})
                                           .shared_bytes()};
    case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO: return std::vector<RecordRef>{};
    default: return {};
  }
}

FinishedRef finalize_engine_config(const Record& record) {
  auto config = std::make_shared<EngineConfig>();
  config->engine_record = record.reference(CUDNN_ATTR_ENGINECFG_ENGINE);
  config->options = with_knob(config->engine().strategy.options, chosen_workspace_knob(record));
  return config;
}

RecordRef make_config_record(RecordRef engine, std::int64_t workspace_knob) {
  auto record = std::make_shared<Record>();
  record->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  record->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = std::vector{std::move(engine)};
  record->attributes[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = std::vector{knob_choice(workspace_knob)};
  record->finished = finalize_engine_config(*record);
  return record;
}

RecordRef make_config_record(RecordRef graph, std::int64_t index, const Device& device,
                             std::int64_t workspace_knob) {
  std::vector<Strategy> strategies =
      list_strategies(finished<OperationGraph>(*graph).graph, device);
  const auto count = static_cast<std::int64_t>(strategies.size());
  if (index < 0 || index >= count)
    fail(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
         "plan: got engine {}, expected 0 to {}; build the plan again", index, count - 1);
  return make_config_record(
      make_engine_record(std::move(graph), index, device,
                         std::move(strategies[static_cast<std::size_t>(index)])),
      workspace_knob);
}

}  // namespace ashlar::cudnn
