// compile(), explain() and engines(): where the layers meet.
#include <ashlar/plan.hpp>

#include "base/log.hpp"
#include "cpu/engine_table.hpp"
#include "plan/plan_data.hpp"

namespace ashlar {

EngineTable engine_table(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return cpu::engine_table();
    case DeviceKind::cuda: return {};
  }
  return {};
}

Plan compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  if (!device.props().present)
    fail(ErrorCode::device, "compile: device '{}' is not present here; explain() works without it",
         device.props().name);
  Plan plan(build_plan(graph, device.props(), options, nullptr, true));
  log(LogLevel::explain, "{}", plan.explain());
  return plan;
}

std::string explain(const Graph& graph, const Device& device, const CompileOptions& options) {
  // Kernels know their scratch memory; for a device that is not here the choice alone is explained.
  return build_plan(graph, device.props(), options, nullptr, device.props().present)->explain();
}

std::vector<EngineInfo> engines(DeviceKind kind) {
  std::vector<EngineInfo> list;
  for (const Engine* engine : engine_table(kind))
    list.push_back({std::string(engine->id()), std::string(to_string(engine->kind())),
                    std::string(engine->description())});
  return list;
}

}  // namespace ashlar
