#include "support/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ashlar::support {

Problem::Problem(const Graph& graph, std::uint64_t seed, Fill fill, const Change& change)
    : memory_(graph) {
  fill_inputs(memory_, seed, fill);
  if (change) change(memory_);
  memory_.seal();
  expected_ = evaluate_reference(graph, memory_.readable());
  for (const Expected& expected : expected_)
    elements_ += static_cast<std::int64_t>(expected.values.size());
}

void Problem::require_exact() {
  for (Expected& expected : expected_) std::fill(expected.bounds.begin(), expected.bounds.end(), 0);
}

template <class Run>
std::string Problem::run_with(std::int64_t workspace_bytes, const Run& run) {
  GuardedBlock workspace(static_cast<std::size_t>(workspace_bytes));
  memory_.paint_outputs();
  run(memory_.pointers(), workspace.data());
  if (!workspace.intact()) return "bytes before or after the workspace changed";
  if (std::string damage = memory_.damage(); !damage.empty()) return damage;
  compared_ = 0;
  for (const Expected& expected : expected_) {
    const Comparison comparison =
        compare(memory_.graph().tensor(expected.tensor), memory_.data(expected.tensor), expected);
    compared_ += comparison.compared;
    if (!comparison.ok) return comparison.summary;
  }
  return {};
}

std::string Problem::run(const PlanData& plan) {
  return run_with(plan.workspace_bytes, [&](std::span<void* const> pointers, void* workspace) {
    plan.run(pointers, workspace, nullptr);
  });
}

std::string Problem::run(const Plan& plan) {
  return run_with(plan.workspace_size(), [&](std::span<void* const> pointers, void* workspace) {
    plan.run(pointers, workspace);
  });
}

std::string check_plan(const Graph& graph, const CompileOptions& options, std::uint64_t seed,
                       Fill fill) {
  try {
    const Plan plan = compile(graph, Device::cpu(), options);
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
