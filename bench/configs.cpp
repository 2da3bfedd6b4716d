#include "configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/inspect.hpp>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "back_to_back.hpp"
#include "checking.hpp"
#include "counts.hpp"
#include "gpu_tensors.hpp"
#include "memory.hpp"
#include "sides.hpp"
#include "statistics.hpp"
#include "units.hpp"

namespace ashlar::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kConfigSamples = 5;

// Sampled elements of every output, after a run.
std::vector<std::vector<double>> results_of(const Gpu& gpu, const Graph& graph,
                                            const GpuTensors& tensors) {
  std::vector<std::vector<double>> all;
  const std::vector<TensorId> bound = graph.bound_tensors();
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (const Tensor& tensor = graph.tensor(bound[i]); tensor.kind == TensorKind::output)
      all.push_back(sample(gpu, tensor, tensors.pointers()[i]));
  return all;
}

double difference(const Graph& graph, const std::vector<std::vector<double>>& ours,
                  const std::vector<std::vector<double>>& first) {
  double worst = 0;
  std::size_t at = 0;
  for (const TensorId id : graph.bound_tensors())
    if (const Tensor& tensor = graph.tensor(id); tensor.kind == TensorKind::output) {
      worst = std::max(worst, worst_difference(tensor.dtype, ours[at], first[at]));
      ++at;
    }
  return worst;
}

// The plan with another engine configuration for one region.
Plan plan_with(const Json& plan, std::size_t region, const Trial& trial,
               const Constants& constants = {}) {
  Json changed = plan;
  Json& entry = changed["regions"][region];
  entry["engine"] = trial.engine;
  entry["knobs"] = Json::object();
  for (const auto& [name, value] : trial.knobs) entry["knobs"][name] = value;
  return Plan::from_json(changed.dump(), constants);
}

std::size_t region_with_most_candidates(const std::vector<RegionInspection>& regions) {
  const auto found = std::ranges::max_element(
      regions, {}, [](const RegionInspection& region) { return region.candidates.size(); });
  return static_cast<std::size_t>(found - regions.begin());
}

// A case's plan and the candidates of the region that has the most.
struct Tried {
  Json plan;
  std::size_t region = 0;
  std::string region_name;
  std::vector<Trial> trials;

  Tried(const Case& problem, const MeasureOptions& options) {
    const CompileOptions wishes = plan_options(
        problem.problem, {.max_candidates = options.max_configs, .engine = options.engine});
    const Graph graph = problem.problem.build();
    const Device device = options.gpu->device();
    plan = Json::parse(compile(graph, device, wishes).to_json());
    std::vector<RegionInspection> regions =
        inspect(graph, device, wishes, {.candidates = true}).regions;
    region = region_with_most_candidates(regions);
    region_name = std::move(regions[region].name);
    trials = std::move(regions[region].candidates);
  }
};

// work(0) to work(count - 1). Errors are dropped: measuring reports them again.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) try {
          work(at);
        } catch (const Error&) {
        }
    });
  for (std::thread& worker : workers) worker.join();
}

Json trial_json(const ConfigTime& config) {
  Json json = {{"engine", config.trial.engine}, {"knobs", Json::object()}};
  for (const auto& [name, value] : config.trial.knobs) json["knobs"][name] = value;
  json["estimated_us"] = four_digits(config.trial.estimated * 1e6);
  if (config.trial.measured) json["measured_us"] = four_digits(*config.trial.measured * 1e6);
  if (config.back_to_back) json["row_us"] = four_digits(*config.back_to_back * 1e6);
  if (config.is_far) json["difference"] = four_digits(config.difference);
  if (!config.trial.failure.empty()) json["failure"] = config.trial.failure;
  return json;
}

}  // namespace

const ConfigTime* CaseConfigs::fastest() const {
  const ConfigTime* best = nullptr;
  for (const ConfigTime& one : configs)
    if (one.trial.measured && (!best || *one.trial.measured < *best->trial.measured)) best = &one;
  return best;
}

std::optional<double> CaseConfigs::loss() const {
  const ConfigTime* best = fastest();
  if (!best || !configs.front().trial.measured) return std::nullopt;
  return *configs.front().trial.measured / *best->trial.measured;
}

void compile_configs_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress) {
  std::vector<const Case*> cases;
  for (const Suite& suite : suites)
    for (const Case& one : suite.cases) cases.push_back(&one);
  std::vector<std::unique_ptr<const Tried>> tried(cases.size());
  on_all_cores(cases.size(), [&](std::size_t i) {
    tried[i] = std::make_unique<const Tried>(*cases[i], options);
  });
  std::vector<std::pair<const Tried*, const Trial*>> configs;
  for (const auto& one : tried)
    if (one)
      for (const Trial& trial : one->trials) configs.emplace_back(one.get(), &trial);
  std::mutex mutex;
  std::size_t done = 0;
  on_all_cores(configs.size(), [&](std::size_t i) {
    const auto& [one, trial] = configs[i];
    plan_with(one->plan, one->region, *trial);
    const std::lock_guard lock(mutex);
    progress(fmt::format("compiled {} of {} configurations", ++done, configs.size()));
  });
}

CaseConfigs measure_configs(const Case& problem, const MeasureOptions& options,
                            const std::function<void(const std::string&)>& progress) {
  const Gpu& gpu = *options.gpu;
  const Graph graph = problem.problem.build();
  const GpuTensors tensors(gpu, graph, problem.problem, options.seed);
  const Tried tried(problem, options);

  const Constants constants = constants_of(graph, problem.problem, tensors.pointers());
  std::optional<BackToBack> back_to_back;
  if (problem.problem.back_to_back) back_to_back.emplace(gpu, graph, tensors, traffic(graph));

  CaseConfigs result{problem.name, tried.region_name, {}, {}};
  std::vector<std::vector<double>> first;
  for (const Trial& trial : tried.trials) {
    ConfigTime& one = result.configs.emplace_back(ConfigTime{trial});
    progress(fmt::format("{} of {}: {} {}", result.configs.size(), tried.trials.size(),
                         trial.engine, trial.config_text()));
    try {
      const Plan changed = plan_with(tried.plan, tried.region, trial, constants);
      const ashlar::Memory workspace(gpu.device(), changed.workspace_size());
      const auto run_on = [&](std::span<void* const> pointers, void* stream = nullptr) {
        changed.run(pointers, workspace.data(), stream);
      };
      Side side([&] { run_on(tensors.pointers()); }, &gpu);
      gpu.device().synchronize();
      const auto results = results_of(gpu, graph, tensors);
      if (first.empty()) first = results;
      one.difference = difference(graph, results, first);
      one.is_far = one.difference > problem.far;
      for (int i = 0; i < kConfigSamples; ++i) side.sample();
      one.trial.measured = side.median_seconds();
      if (back_to_back) {
        const WorkGraph all = back_to_back->captured(run_on);
        Side all_runs([&] { all.launch(); }, &gpu);
        for (int i = 0; i < kConfigSamples; ++i) all_runs.sample();
        one.back_to_back = back_to_back->seconds_of_one(all_runs.median_seconds());
      }
    } catch (const Error& error) {
      one.trial.failure = error.what();
      try {
        gpu.require_alive();
      } catch (const Error&) {
        throw Error(error.code(), fmt::format("{}: {} {} killed the CUDA context: {}", problem.name,
                                              trial.engine, trial.config_text(), error.what()));
      }
    }
  }
  return result;
}

std::string configs_text(const CaseConfigs& timed) {
  std::string text = fmt::format("{} ({})\n", timed.name, timed.region);
  if (!timed.failure.empty()) return text + "  FAILED: " + timed.failure + "\n";
  for (const ConfigTime& one : timed.configs) {
    const Trial& trial = one.trial;
    text += fmt::format(
        "  {:>9.2f} us estimated{:>10}{}  {} {}{}{}\n", trial.estimated * 1e6,
        trial.measured ? fmt::format("{:.2f}", *trial.measured * 1e6) : "-",
        one.back_to_back ? fmt::format(", back to back {:.2f}", *one.back_to_back * 1e6) : "",
        trial.engine, trial.config_text(), &one == timed.fastest() ? "  <-" : "",
        one.is_far ? "  RESULTS DIFFER" : (trial.failure.empty() ? "" : "  " + trial.failure));
  }
  if (const auto loss = timed.loss())
    text += fmt::format("  first choice / fastest: {:.3f}\n", *loss);
  return text;
}

std::string configs_summary(std::span<const CaseConfigs> cases) {
  std::vector<double> losses;
  const CaseConfigs* worst = nullptr;
  for (const CaseConfigs& one : cases)
    if (const auto loss = one.loss()) {
      losses.push_back(*loss);
      if (!worst || *loss > *worst->loss()) worst = &one;
    }
  if (!worst) return "nothing was timed\n";
  return fmt::format(
      "first choice / fastest: {:.3f} (geometric mean of {} cases), worst {:.3f} ({})\n",
      geometric_mean(losses).value_or(1), losses.size(), *worst->loss(), worst->name);
}

std::string configs_json(const Setting& setting, const std::string& suite,
                         std::span<const CaseConfigs> cases) {
  const Json head = {{"device", setting.device},
                     {"driver", setting.driver},
                     {"date", setting.date},
                     {"commit", setting.commit},
                     {"suite", suite}};
  // One line per trial: readable in a diff.
  std::string text = head.dump(2);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  \"configs\": [";
  for (const CaseConfigs& one : cases) {
    Json entry = {{"name", one.name}, {"region", one.region}};
    if (!one.failure.empty()) entry["failure"] = one.failure;
    std::string line = entry.dump();
    line.pop_back();
    text += (&one == cases.data() ? "\n    " : ",\n    ") + line + ", \"trials\": [";
    for (const ConfigTime& config : one.configs)
      text +=
          (&config == one.configs.data() ? "\n      " : ",\n      ") + trial_json(config).dump();
    text += "]}";
  }
  return text + "]\n}\n";
}

}  // namespace ashlar::bench
