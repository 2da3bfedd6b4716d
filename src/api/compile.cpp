// compile(), explain(), tune() and engines(): connects the planner to the backends.
#include <ashlar/plan.hpp>

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

std::string explain(const Graph& graph, const Device& device, const CompileOptions& options) {
  // Built kernels know their scratch memory; for an absent device only the selection is explained.
  return build_plan(graph, device.props(), options, nullptr, device.props().present)->explain();
}

Explanation explanation(const Graph& graph, const Device& device, const CompileOptions& options) {
  return build_plan(graph, device.props(), options, nullptr, device.props().present)->explanation();
}

namespace {

EngineInfo info_of(const Engine& engine, ComputeMethod method) {
  return {std::string(engine.id()), std::string(to_string(engine.kind())),
          std::string(engine.description()), engine.kind() == EngineKind::reference, method};
}

}  // namespace

std::vector<EngineInfo> engines(DeviceKind kind) {
  std::vector<EngineInfo> list;
  for (const Engine* engine : backend_for(kind).engines())
    list.push_back(info_of(*engine, engine->method()));
  return list;
}

namespace {

// visit(lowered graph, region, contenders) for every region of a graph.
template <class Visit>
std::vector<RegionTrials> for_regions(const Graph& graph, const DeviceProps& device,
                                      const CompileOptions& options, const Visit& visit) {
  const auto outline = build_plan(graph, device, options, nullptr, false);
  std::vector<RegionTrials> regions;
  for (const PlanData::Step& step : outline->steps) {
    Ranking ranking = rank(step.region, backend_for(device.kind).engines(), device, options);
    regions.push_back(
        visit(outline->lowered, step.region, contenders(std::move(ranking.candidates), options)));
  }
  return regions;
}

}  // namespace

std::vector<RegionTrials> candidates(const Graph& graph, const Device& device,
                                     const CompileOptions& options) {
  return for_regions(graph, device.props(), options, trials_of);
}

std::vector<RegionTrials> tune(const Graph& graph, const Device& device,
                               const TuneRequest& request) {
  if (!device.props().present)
    fail(ErrorCode::device, "tune: device '{}' is not present here; candidates() works without it",
         device.props().name);
  return for_regions(graph, device.props(), request.options,
                     [&](const LoweredGraph& lowered, const Region& region,
                         const std::vector<Candidate>& contenders) {
                       return time_contenders(lowered, region, contenders,
                                              backend_for(device.props().kind), device.props(),
                                              request);
                     });
}

std::vector<RegionEngines> engines_for(const Graph& graph, const Device& device,
                                       const CompileOptions& options) {
  const auto outline = build_plan(graph, device.props(), options, nullptr, false);
  std::vector<RegionEngines> regions;
  for (const PlanData::Step& step : outline->steps) {
    RegionEngines& entry = regions.emplace_back();
    entry.region = step.region.to_text(outline->lowered.graph);
    for (const Engine* engine : backend_for(device.props().kind).engines())
      if (engine->supports(step.region, device.props()))
        entry.engines.push_back(info_of(*engine, engine->method_for(step.region)));
  }
  return regions;
}

}  // namespace ashlar
