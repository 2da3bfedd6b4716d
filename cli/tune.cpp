#include <ashlar/tune.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "commands.hpp"
#include "compile_flags.hpp"
#include "progress.hpp"
#include "sources.hpp"

namespace ashlar::cli {

namespace {

struct TuneFlags : CompileFlags {
  std::vector<std::string> sources;
  bool again = false;
};

// What measuring gained over the first choice.
class Gains {
 public:
  void add(const std::string& name, double gain) {
    ++count_;
    logarithms_ += std::log(gain);
    if (gain > most_) {
      most_ = gain;
      max_name_ = name;
    }
  }
  std::string to_text() const {
    if (count_ == 0) return "nothing to choose from\n";
    return fmt::format(
        "{} region{} with a choice: {:.3f} times as fast as the first choices (geometric mean){}\n",
        count_, count_ == 1 ? "" : "s", std::exp(logarithms_ / count_),
        most_ > 1 ? fmt::format(", at most {:.2f} times ({})", most_, max_name_) : "");
  }

 private:
  int count_ = 0;
  double logarithms_ = 0, most_ = 1;
  std::string max_name_;
};

std::string describe(const Trial& trial) {
  const std::string config = trial.config_text();
  return config.empty() ? trial.engine : fmt::format("{} ({})", trial.engine, config);
}

void print_region(const std::string& name, const RegionTrials& region, Gains& gains) {
  const Trial &first = region.trials.front(), &best = region.trials[region.best];
  fmt::print("{}: {}\n  ", name, region.region);
  if (!best.measured) {
    fmt::print("none of {} candidates ran: {}\n", region.trials.size(), first.failure);
    return;
  }
  fmt::print("{}: {:.2f} us", describe(best), *best.measured * 1e6);
  if (region.remembered) {
    fmt::print(", remembered\n");
    return;
  }
  fmt::print(", the fastest of {}", region.trials.size());
  if (region.best != 0 && first.measured)
    fmt::print("; the first choice, {}: {:.2f} us", describe(first), *first.measured * 1e6);
  fmt::print("\n");
  for (const Trial& trial : region.trials)
    if (!trial.failure.empty())
      fmt::print("  {} did not run: {}\n", describe(trial), trial.failure);
  if (region.trials.size() > 1 && first.measured) gains.add(name, *first.measured / *best.measured);
}

int tune_graphs(const TuneFlags& flags) {
  const Device device = flags.chosen_device();
  if (!device.props().present)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("device {} is not present here: there is nothing to time",
                            device.props().name));
  Progress progress;
  Gains gains;
  TuneRequest request{flags.chosen_options(), flags.again, {}};
  for (const std::string& source : flags.sources)
    for (const bench::SuiteGraph& one : graphs_of(source)) {
      request.progress = [&](const std::string& what) {
        progress.stage(fmt::format("{}: {}", one.name, what));
      };
      progress.stage(fmt::format("planning {}", one.name));
      const std::vector<RegionTrials> regions =
          autotune(Graph::from_json(one.graph), device, request);
      progress.pause();
      for (const RegionTrials& region : regions)
        if (!region.trials.empty()) print_region(one.name, region, gains);
      std::fflush(stdout);
    }
  fmt::print("{}", gains.to_text());
  return kExitOk;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "Time what could run each region of graphs on this device and remember the fastest "
      "($ASHLAR_CACHE); plans compiled with tuning take it from there");
  command
      ->add_option("SUITE|GRAPH.json", flags->sources,
                   "Suites (ashlar bench --list) and graphs in JSON, - for standard input")
      ->required();
  command->add_flag("--again", flags->again, "Time again what is remembered");
  add_compile_flags(*command, *flags, Tunes::always);
  command->callback([flags, &action] { action = [flags] { return tune_graphs(*flags); }; });
}

}  // namespace ashlar::cli
