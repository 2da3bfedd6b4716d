#include "backend/execution_plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/attribute_table.hpp"
#include "backend/finalize.hpp"
#include "backend/record_json.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "core/plan_cache.hpp"

namespace ashlar::cudnn {

namespace {

using nlohmann::json;
constexpr const char* kPlanFormat = "ashlar-cudnn-plan";
constexpr int kPlanVersion = 1;
constexpr std::int64_t kPlanWorkspaceAlignment = 64;  // workspace alignment in bytes
// Bound on the plans for overridden shapes that one execution plan caches. When it is reached, the
// cache is cleared.
constexpr std::size_t kMaxOthers = 1024;

BoundPlan bound(std::shared_ptr<const Plan> plan, const std::vector<std::int64_t>& uids,
                const std::vector<Assumption>& assumptions) {
  BoundPlan result{std::move(plan), {}, assumptions};
  for (std::size_t i = 0; i < uids.size(); ++i) result.bindings.push_back({uids[i], i});
  std::stable_sort(result.bindings.begin(), result.bindings.end(),
                   [](const auto& a, const auto& b) { return a.uid < b.uid; });
  return result;
}

// Batch norm over several GPUs: PEER_STAT_DESCS are one buffer per GPU through which they share
// statistics. A plan that ignored them would normalise by local statistics. One buffer means one
// GPU, whose statistics are all there are.
void refuse_peer_statistics(const OperationGraph& graph) {
  for (const RecordRef& operation : graph.operations)
    for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS,
                            CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS})
      if (const std::size_t gpus = operation->records(name).size(); gpus > 1)
        fail(CUDNN_STATUS_NOT_SUPPORTED,
             "{}: got the buffers of {} GPUs, expected at most 1: statistics across GPUs are not "
             "supported",
             attribute_name(name), gpus);
}

// `translated` is an OperationGraph or a TranslatedGraph.
BoundPlan compiled(const auto& translated, const Device& device, const CompileOptions& options) {
  const Graph& graph = translated.graph;
  PlanKey key("execution plan", device);
  key.add(device.props().compute_units).add(std::string_view(graph.to_json(-1)));
  key.add(options.deterministic).add(options.allow_tf32).add(options.allow_winograd);
  key.add(options.workspace_limit).add(options.fuse).add(options.reference_only);
  key.add(std::string_view(options.engine));
  return bound(cached_plan(key, [&] { return compile(graph, device, options); }), translated.uids,
               translated.assumptions);
}

void add_to_text(std::string& text, std::int64_t value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A new record with the attributes of `record`, not finalized.
std::shared_ptr<Record> copied(const Record& record) {
  auto copy = std::make_shared<Record>();
  copy->type = record.type;
  copy->attributes = record.attributes;
  return copy;
}

// The configuration rebuilt with `handle` in its graph, so that it targets the handle's device.
RecordRef with_handle(const RecordRef& config, cudnnHandle_t handle) {
  const RecordRef engine = config->reference(CUDNN_ATTR_ENGINECFG_ENGINE);
  const RecordRef graph = engine->reference(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  auto new_graph = copied(*graph);
  new_graph->attributes[CUDNN_ATTR_OPERATIONGRAPH_HANDLE] = std::vector<void*>{handle};
  new_graph->finished = finalize(*new_graph);
  auto new_engine = copied(*engine);
  new_engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = std::vector<RecordRef>{new_graph};
  new_engine->attributes.erase(CUDNN_ATTR_ENGINE_DEVICEPROP);
  new_engine->finished = finalize(*new_engine);
  auto new_config = copied(*config);
  new_config->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = std::vector<RecordRef>{new_engine};
  new_config->finished = finalize(*new_config);
  return new_config;
}

FinishedRef from_json(const Record& record) try {
  const json text = json::parse(record.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION));
  if (text.at("format") != kPlanFormat || text.at("version") != kPlanVersion)
    fail(
        CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
        "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got an unknown format, expected {} version "
        "{}; build "
        "the plan again",
        kPlanFormat, kPlanVersion);
  RecordRef config = record_from_json(text.at("config").get<std::string>());
  if (config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
    fail(
        CUDNN_STATUS_BAD_PARAM,
        "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got no engine configuration, expected one");
  if (record.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) {
    const auto handle =
        static_cast<cudnnHandle_t>(record.pointer(CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
    object(handle, "CUDNN_ATTR_EXECUTION_PLAN_HANDLE");
    config = with_handle(config, handle);
  }
  const auto& engine_config = finished<EngineConfig>(*config);
  const OperationGraph& graph = engine_config.engine().operation_graph();
  refuse_peer_statistics(graph);
  // A plan saved on the same kind of device keeps its engine choices; otherwise engines are chosen
  // again.
  const auto& saved = text.at("plan").get_ref<const std::string&>();
  if (text.at("device") == engine_config.engine().device.props().name) {
    PlanKey key("saved execution plan", engine_config.engine().device);
    key.add(std::string_view(saved));
    auto plan = cached_plan(key, [&] { return Plan::from_json(saved); });
    if (plan->graph().structural_hash() == graph.graph.structural_hash())
      return std::make_shared<ExecutionPlan>(config,
                                             bound(std::move(plan), graph.uids, graph.assumptions));
  }
  return std::make_shared<ExecutionPlan>(
      config, compiled(graph, engine_config.engine().device, engine_config.options));
} catch (const json::exception& error) {
  fail(CUDNN_STATUS_BAD_PARAM,
       "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got text that is not a plan: {}",
       error.what());
}

}  // namespace

std::int64_t BoundPlan::workspace_size() const {
  const std::int64_t bytes = plan->workspace_size();
  return bytes == 0 ? 0 : bytes + kPlanWorkspaceAlignment;
}

std::shared_ptr<const BoundPlan> ExecutionPlan::other(const Device& device,
                                                      const ShapeOverrides& overrides,
                                                      bool may_assume) const {
  std::string key = device.props().name + (may_assume ? "" : "!");
  for (const auto& [uid, shape] : overrides) {
    add_to_text(key, uid);
    for (const Dims* values : {&shape.dims, &shape.strides}) {
      add_to_text(key, values->rank());
      for (const std::int64_t value : *values) add_to_text(key, value);
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = others_.find(key); known != others_.end()) return known->second;
  }
  const auto& config = finished<EngineConfig>(*config_);
  const OperationGraph& graph = config.engine().operation_graph();
  const TranslatedGraph translated = translate(graph.operations, overrides, may_assume);
  // The caller's workspace has the size that this plan reported. A plan that needs more owns the
  // rest.
  CompileOptions options = config.options;
  options.workspace_limit = std::min(options.workspace_limit, plan_.plan->workspace_size());
  auto bound_plan = std::make_shared<const BoundPlan>(compiled(translated, device, options));
  const std::scoped_lock lock(mutex_);
  if (others_.size() >= kMaxOthers) others_.clear();
  return others_.emplace(std::move(key), std::move(bound_plan)).first->second;
}

std::optional<AttributeValue> ExecutionPlan::computed(cudnnBackendAttributeName_t name) const {
  switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return std::vector<std::int64_t>{plan_.workspace_size()};
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: return std::vector<RecordRef>{config_};
    case CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS: return std::vector<std::int64_t>{};
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
      return json{{"format", kPlanFormat},
                  {"version", kPlanVersion},
                  {"device", plan_.plan->device().name},
                  {"config", record_to_json(config_)},
                  {"plan", plan_.plan->to_json()}}
          .dump();
    default: return {};
  }
}

FinishedRef finalize_execution_plan(const Record& record) {
  if (!record.has(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) {
    if (record.has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) return from_json(record);
    fail(CUDNN_STATUS_BAD_PARAM,
         "CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: not set, expected an engine configuration (or "
         "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)");
  }
  const RecordRef config = record.reference(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto& engine_config = finished<EngineConfig>(*config);
  const OperationGraph& graph = engine_config.engine().operation_graph();
  refuse_peer_statistics(graph);
  return std::make_shared<ExecutionPlan>(
      config, compiled(graph, engine_config.engine().device, engine_config.options));
}

}  // namespace ashlar::cudnn
