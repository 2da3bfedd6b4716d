#include <ashlar/outline.hpp>

#include "plan/plan_data.hpp"

namespace ashlar {

Outline outline(const Graph& graph, const Device& device, const CompileOptions& options) {
  const auto plan = build_plan(graph, device.props(), options, nullptr, false);
  Outline outline;
  outline.notes = plan->notes;
  outline.workspace_size = plan->workspace_bytes;
  outline.owned_bytes = plan->owned_bytes;
  double most = -1.0;
  for (const PlanData::Step& step : plan->steps) {
    outline.seconds += step.choice.seconds;
    if (step.choice.seconds > most) {
      most = step.choice.seconds;
      outline.heaviest = static_cast<int>(outline.engines.size());
    }
    outline.engines.emplace_back(step.choice.engine ? step.choice.engine->id() : "none");
  }
  return outline;
}

}  // namespace ashlar
