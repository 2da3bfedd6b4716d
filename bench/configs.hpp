// `ashlar bench --configs`: times every engine configuration of a case. The cost model is fitted to
// these records (tools/fit_costs.cpp) and judged by them (tests/bench/ranking_test.cpp).
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
  Trial trial;            // with the cost model's estimate and the median of its runs
  double difference = 0;  // from the results of the first configuration, in tolerances
  bool is_far = false;    // difference > Case::far
  std::optional<double> back_to_back = {};  // seconds per run, if the case sets back_to_back
};

struct CaseConfigs {
  std::string name;                 // of the case
  std::string region;               // whose configurations are timed
  std::vector<ConfigTime> configs;  // the first is the choice of an untuned plan
  std::string failure;              // nonempty: nothing was timed

  const ConfigTime* fastest() const;  // null: none ran
  // Time of the first / time of the fastest: 1 if the cost model chose right.
  std::optional<double> loss() const;
};

// Compiles on all cores what measure_configs() will run.
void compile_configs_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress);

// Varies the region with the most candidates; the other regions keep the plan's choice.
CaseConfigs measure_configs(const Case& problem, const MeasureOptions& options,
                            const std::function<void(const std::string&)>& progress);

std::string configs_text(const CaseConfigs& timed);
// One line: geometric mean of the losses, and the worst.
std::string configs_summary(std::span<const CaseConfigs> cases);
std::string configs_json(const Setting& setting, const std::string& suite,
                         std::span<const CaseConfigs> cases);

}  // namespace ashlar::bench
