// outline() and shared_memory(): properties of a plan without compiling GPU kernels.
#include <ashlar/outline.hpp>

#include "api/backends.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar {

namespace {

// CPU kernels are built, which is fast, so their scratch memory is known exactly. GPU engines
// report their scratch memory exactly without building.
std::shared_ptr<const PlanData> outlined(const Graph& graph, const Device& device,
                                         const CompileOptions& options) {
  const bool is_cpu = device.props().kind == DeviceKind::cpu && device.props().present;
  return build_plan(graph, device.props(), options, nullptr, is_cpu);
}

}  // namespace

Outline outline(const Graph& graph, const Device& device, const CompileOptions& options) {
  const auto plan = outlined(graph, device, options);
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

std::int64_t shared_memory(const Graph& graph, const Device& device,
                           const CompileOptions& options) {
  std::int64_t most = 0;
  const auto plan = build_plan(graph, device.props(), options, nullptr, false);
  for (const PlanData::Step& step : plan->steps)
    if (const auto* engine = dynamic_cast<const cuda::CudaEngine*>(step.choice.engine))
      for (const auto& launch :
           engine->design(plan->lowered.graph, step.region, step.choice.config, device.props())
               .launches)
        most = std::max(most, static_cast<std::int64_t>(launch.shared_bytes));
  return most;
}

}  // namespace ashlar
