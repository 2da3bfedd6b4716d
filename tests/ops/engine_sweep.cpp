// The engine sweep: every engine and configuration against the oracle.
#include "ops/engine_sweep.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "api/backends.hpp"
#include "support/problem.hpp"
#include "support/test_device.hpp"

namespace ashlar::ops {

namespace {

using support::Fill;
using support::Problem;

std::vector<SavedChoice> choices_of(const PlanData& plan) {
  std::vector<SavedChoice> choices;
  for (const PlanData::Step& step : plan.steps)
    choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
  return choices;
}

// Runs with these engines and configurations: twice plain and once guarded. Returns a message on
// failure.
std::string run_choices(const Graph& graph, const std::vector<SavedChoice>& choices,
                        std::vector<Problem>& problems) {
  const DeviceProps& device = support::test_device().props();
  const auto plan = build_plan(graph, device, {}, &choices, true);
  const auto guarded = build_plan(graph, device, {.guard = true}, &choices, true);
  for (Problem& problem : problems) {
    if (std::string wrong = problem.run(*guarded); !wrong.empty()) return "guarded: " + wrong;
    if (std::string wrong = problem.run(*plan); !wrong.empty()) return wrong;
    if (!plan->notes.deterministic) continue;
    const std::vector<std::byte> first = problem.memory().output_bytes();
    if (std::string wrong = problem.run(*plan); !wrong.empty()) return "second run: " + wrong;
    if (problem.memory().output_bytes() != first)
      return "called deterministic, but a second run gave other bits";
  }
  return {};
}

// All on the CPU; on a GPU, where each has to be compiled, the first and one other that varies from
// graph to graph.
std::vector<Config> some_of(const std::vector<Config>& configs, std::size_t number) {
  const bool on_gpu = support::test_device().props().kind == DeviceKind::cuda;
  if (!on_gpu || configs.size() <= 2 || std::getenv("ASHLAR_TEST_LONG") != nullptr) return configs;
  return {configs[0], configs[1 + number % (configs.size() - 1)]};
}

}  // namespace

double EngineSweep::compared_share() const {
  return elements_ == 0 ? 1.0 : static_cast<double>(compared_) / static_cast<double>(elements_);
}

void EngineSweep::visit(const OpCase& one, const Variant& variant) {
  const std::string name =
      fmt::format("{} ({}), {}, {}{}", one.op, one.label, to_string(variant.dtype),
                  to_string(variant.shape), variant.fused ? ", fused" : "");
  try {
    CaseBuilder builder(variant);
    one.build(builder);
    ++graphs_;
    sweep(builder.graph(), one, variant, name);
  } catch (const std::exception& error) {
    failures_.push_back(fmt::format("{}: threw: {}", name, error.what()));
  }
}

void EngineSweep::sweep(const Graph& graph, const OpCase& one, const Variant& variant,
                        const std::string& name) {
  const DeviceProps& device = support::test_device().props();
  const auto outline = build_plan(graph, device, {}, nullptr, false);
  const std::vector<SavedChoice> defaults = choices_of(*outline);
  std::vector<Problem> problems;
  problems.emplace_back(graph, 7);
  if (one.exact && !variant.fused) {
    problems.emplace_back(graph, 11, Fill::whole_numbers);
    problems.back().require_exact();
  }
  for (std::size_t step = 0; step < outline->steps.size(); ++step) {
    const Region& region = outline->steps[step].region;
    for (const Engine* engine : backend_for(device.kind).engines()) {
      if (!support::is_tested(engine->id())) continue;
      const Support support = engine->supports(region, device);
      if (!support) {
        ++refusals_;
        if (support.reason().size() < 4)
          failures_.push_back(fmt::format("{}: {} refuses without a reason", name, engine->id()));
        continue;
      }
      const std::vector<Config> configs = engine->configs(region, device);
      for (const Config& config : some_of(configs, static_cast<std::size_t>(graphs_))) {
        std::vector<SavedChoice> choices = defaults;
        choices[step] = {std::string(engine->id()), config.knobs};
        ++plans_;
        std::string wrong;
        try {
          wrong = run_choices(graph, choices, problems);
        } catch (const std::exception& error) {
          wrong = fmt::format("threw: {}", error.what());
        }
        for (const Problem& problem : problems) {
          elements_ += problem.elements();
          compared_ += problem.compared();
        }
        if (!wrong.empty())
          failures_.push_back(fmt::format("{}: {} [{}] on '{}': {}", name, engine->id(),
                                          config.to_text(), region.to_text(outline->lowered.graph),
                                          wrong));
      }
      if (configs.empty())
        failures_.push_back(fmt::format("{}: {} accepts, but offers no way", name, engine->id()));
      combinations_.emplace(engine->id(), one.op, variant.dtype);
    }
  }
}

}  // namespace ashlar::ops
