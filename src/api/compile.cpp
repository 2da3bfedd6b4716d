// compile(), explain(), tune() and engines(): connects the planner to the backends.
#include <ashlar/plan.hpp>

#include "base/log.hpp"
#include "cpu/cpu_backend.hpp"
#include "cuda/cuda_backend.hpp"
#include "plan/plan_data.hpp"
#include "plan/tune.hpp"

namespace ashlar {

const Backend& backend(DeviceKind kind) {
  // Never destroyed: plans in static storage release memory through them. Regions without a GPU
  // kernel run on the CPU's last-resort engine.
  static const Backend* const cpu = cpu::make_backend().release();
  static const Backend* const cuda = cuda::make_backend(*cpu->engines().back()).release();
  return kind == DeviceKind::cuda ? *cuda : *cpu;
}

EngineTable engine_table(DeviceKind kind) { return backend(kind).engines(); }

Plan compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  if (!device.props().present)
    fail(ErrorCode::device, "compile: device '{}' is not present here; explain() works without it",
         device.props().name);
  Plan plan(build_plan(graph, device.props(), options, nullptr, true));
  if (log_enabled(LogLevel::explain)) log_text(plan.explain());  // not formatted otherwise
  return plan;
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
  for (const Engine* engine : engine_table(kind))
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
    Ranking ranking = rank(step.region, engine_table(device.kind), device, options);
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
                       return time_contenders(lowered, region, contenders, device.props(), request);
                     });
}

std::vector<RegionEngines> engines_for(const Graph& graph, const Device& device,
                                       const CompileOptions& options) {
  const auto outline = build_plan(graph, device.props(), options, nullptr, false);
  std::vector<RegionEngines> regions;
  for (const PlanData::Step& step : outline->steps) {
    RegionEngines& entry = regions.emplace_back();
    entry.region = step.region.to_text(outline->lowered.graph);
    for (const Engine* engine : engine_table(device.props().kind))
      if (engine->supports(step.region, device.props()))
        entry.engines.push_back(info_of(*engine, engine->method_for(step.region)));
  }
  return regions;
}

}  // namespace ashlar
