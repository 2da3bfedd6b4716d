// Runs plans and compares them with the oracle.
#include "support/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ashlar::support {

Problem::Problem(const Graph& graph, std::uint64_t seed, Fill fill, const Change& change)
    : memory_(graph) {
  fill_inputs(memory_, seed, fill);
  if (change) change(memory_);
  memory_.seal();
  for (const Expected& expected : this->expected({}))
    elements_ += static_cast<std::int64_t>(expected.values.size());
}

void Problem::require_exact() {
  exact_ = true;
  expected_.clear();
}

const std::vector<Expected>& Problem::expected(const PlanNotes& notes) {
  const auto [place, missing] = expected_.try_emplace(notes);
  if (missing) {
    place->second = evaluate_reference(memory_.graph(), memory_.readable(), notes);
    if (exact_ && notes.winograd <= 2 && !notes.reduced_precision_accumulation)
      for (Expected& one : place->second) std::fill(one.bounds.begin(), one.bounds.end(), 0);
  }
  return place->second;
}

TensorId Problem::bound_as(TensorId id) const {
  const Graph& graph = memory_.graph();
  for (const auto& [output, input] : shared_)
    if (graph.tensor(id).name == input) return graph.find_tensor(output);
  return id;
}

template <class AnyPlan>
std::string Problem::run_on(const AnyPlan& plan, const DeviceProps& device,
                            std::int64_t workspace_bytes, const PlanNotes& notes) {
  GuardedBlock workspace(static_cast<std::size_t>(workspace_bytes));
  memory_.paint_outputs();
  const Graph& graph = memory_.graph();
  for (const auto& [output, input] : shared_) {
    const TensorId y = graph.find_tensor(output), x = graph.find_tensor(input);
    for (std::int64_t i = 0; i < number_count(graph.tensor(y)); ++i)
      write_element(graph.tensor(y), memory_.data(y), i,
                    read_element(graph.tensor(x), memory_.data(x), i));
  }
  std::vector<void*> pointers;
  for (const TensorId id : memory_.bound()) pointers.push_back(memory_.data(bound_as(id)));
  if (device.kind == DeviceKind::cpu) {
    plan.run(pointers, workspace.data(), nullptr);
  } else {
    const Device home(device);
    DeviceCopies copies(home);
    std::map<TensorId, void*> on_device;
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      const TensorId id = bound_as(memory_.bound()[i]);
      if (graph.tensor(id).kind == TensorKind::scalar) continue;
      void*& memory = on_device[id];
      if (memory == nullptr) memory = copies.add(memory_.block(id));
      pointers[i] = memory;
    }
    void* device_workspace = copies.add(workspace);
    copies.upload();
    plan.run(std::span<void* const>(pointers), device_workspace, nullptr);
    copies.download();
  }
  if (!workspace.intact()) return "bytes before or after the workspace changed";
  if (std::string damage = memory_.damage(); !damage.empty()) return damage;
  compared_ = 0;
  for (const Expected& expected : expected(notes)) {
    const Comparison comparison =
        expected.compare(memory_.graph().tensor(expected.tensor), memory_.data(expected.tensor));
    compared_ += comparison.compared;
    if (!comparison.ok) return comparison.summary;
  }
  return {};
}

std::string Problem::run(const PlanData& plan) {
  return run_on(plan, plan.device, plan.workspace_bytes, plan.notes);
}

std::string Problem::run(const Plan& plan) {
  return run_on(plan, plan.device(), plan.workspace_size(), plan.notes());
}

std::string check_plan(const Graph& graph, const CompileOptions& options, std::uint64_t seed,
                       Fill fill) {
  try {
    const Plan plan = compile(graph, test_device(), options);
    if (plan.workspace_size() > options.workspace_limit)
      return fmt::format("workspace: {} bytes, the limit is {}", plan.workspace_size(),
                         options.workspace_limit);
    Problem problem(graph, seed, fill);
    if (const std::string wrong = problem.run(plan); !wrong.empty())
      return fmt::format("{}\n{}", wrong, plan.explain());
    return {};
  } catch (const std::exception& error) {
    return fmt::format("threw: {}", error.what());
  }
}

}  // namespace ashlar::support
