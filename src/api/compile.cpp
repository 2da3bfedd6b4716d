// compile(), inspect(), autotune() and engines(): connects the planner to the backends.
#include <ashlar/inspect.hpp>

#include "api/backends.hpp"
#include "base/log.hpp"
#include "cpu/cpu_backend.hpp"
#include "cuda/cuda_backend.hpp"
#include "plan/tune.hpp"

namespace ashlar {

const Backend& backend_for(DeviceKind kind) {
  // Never destroyed: plans in static storage release memory through them. Regions without a GPU
  // kernel run on the CPU's last-resort engine.
  static const Backend* const cpu = cpu::make_backend().release();
  static const Backend* const cuda = cuda::make_backend(*cpu->engines().back()).release();
  return kind == DeviceKind::cuda ? *cuda : *cpu;
}

std::shared_ptr<const PlanData> build_plan(const Graph& graph, const DeviceProps& device,
                                           const CompileOptions& options,
                                           const std::vector<SavedChoice>* saved,
                                           bool build_kernels) {
  return build_plan(graph, backend_for(device.kind), device, options, saved, build_kernels);
}

Plan compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  if (!device.props().present)
    fail(ErrorCode::device, "compile: device '{}' is not present here; explain() works without it",
         device.props().name);
  Plan plan(build_plan(graph, device.props(), options, nullptr, true));
  if (log_enabled(LogLevel::explain)) log_text(plan.explain());  // not formatted otherwise
  return plan;
}

Plan Plan::from_json(std::string_view text, const Constants& constants) {
  SavedPlan saved = read_saved_plan(text);
  saved.options.constants = constants;
  const Device device = Device::named(saved.device);
  if (!device.props().present)
    fail(ErrorCode::parse, "device: got \"{}\", expected a device that is present", saved.device);
  return Plan(build_plan(saved.graph, device.props(), saved.options, &saved.choices, true));
}

Inspection inspect(const Graph& graph, const Device& device, const CompileOptions& options,
                   const InspectDetail& detail) {
  // CPU kernels are built, which is fast, so their scratch memory is known exactly. GPU engines
  // report theirs exactly without building.
  const DeviceProps& props = device.props();
  const bool builds = props.present && (props.kind == DeviceKind::cpu || options.tune);
  return build_plan(graph, props, options, nullptr, builds)->inspect(detail);
}

std::string explain(const Graph& graph, const Device& device, const CompileOptions& options) {
  return inspect(graph, device, options).to_text();
}

std::vector<EngineInfo> engines(DeviceKind kind) {
  std::vector<EngineInfo> list;
  for (const Engine* engine : backend_for(kind).engines())
    list.push_back({std::string(engine->id()), std::string(to_string(engine->kind())),
                    std::string(engine->description()), engine->kind() == EngineKind::reference,
                    engine->method()});
  return list;
}

std::vector<RegionTrials> autotune(const Graph& graph, const Device& device,
                                   const TuneRequest& request) {
  const DeviceProps& props = device.props();
  if (!props.present)
    fail(ErrorCode::device, "autotune: device '{}' is not present here; inspect() works without it",
         props.name);
  const Backend& backend = backend_for(props.kind);
  const auto outline = build_plan(graph, props, request.options, nullptr, false);
  std::vector<RegionTrials> regions;
  for (const PlanData::Step& step : outline->steps) {
    Ranking ranking = rank(step.region, backend.engines(), props, request.options);
    regions.push_back(time_contenders(outline->lowered, step.region,
                                      contenders(std::move(ranking.candidates), request.options),
                                      backend, props, request));
  }
  return regions;
}

}  // namespace ashlar
