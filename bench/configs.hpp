// Every configuration of ours for a case, timed: what the cost model is fitted to and judged by
// (tools/fit_costs, tests/bench/ranking_test.cpp).
#pragma once

#include <ashlar/tune.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure.hpp"
#include "report.hpp"

namespace ashlar::bench {

struct ConfigTime {
  Trial trial;            // as today's cost model ranks it, with the median of its runs
  double difference = 0;  // from the results of the first, in tolerances
  bool is_far = false;    // by more than the case says is rounding
  std::optional<double> back_to_back = {};  // seconds of a run, where the case asks for it
};

struct CaseConfigs {
  std::string name;                 // of the case
  std::string region;               // what the configurations are for
  std::vector<ConfigTime> configs;  // the first is what a plan takes without tuning
  std::string failure;              // nothing was timed

  const ConfigTime* fastest() const;  // null: none ran
  // Time of the first / time of the fastest: 1 where the cost model is right.
  std::optional<double> loss() const;
};

// All that measure_configs() will run, compiled on all processors.
void compile_configs_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress);

// Varies the region that has the most candidates; the others stay as a plan has them.
CaseConfigs measure_configs(const Case& problem, const MeasureOptions& options,
                            const std::function<void(const std::string&)>& progress);

std::string configs_text(const CaseConfigs& timed);
// Geometric mean of the losses and the worst of them, in words.
std::string configs_summary(std::span<const CaseConfigs> cases);
std::string configs_json(const Setting& setting, const std::string& suite,
                         std::span<const CaseConfigs> cases);

}  // namespace ashlar::bench
