// The table for people, the record for machines, the page for both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host_time.hpp"
#include "measure.hpp"

namespace ashlar::bench {

struct Setting {
  std::string device;
  std::string peer;    // "oneDNN 2.6.3"; empty when there is none
  std::string date;    // UTC, ISO 8601
  std::string commit;  // "unknown" when nobody said
  int threads = 1;
  std::uint64_t seed = 1;
  double load = 0;  // processes that wanted a processor, over the last minute, at the start
  bool gpu = false;
  std::string driver = {};  // of a GPU
  double copy_speed = 0;    // of a GPU: bytes per second, read and written ones counted
  bool tune = false;        // our plans were tuned

  const char* peer_name() const { return gpu ? "cuDNN" : "oneDNN"; }
};

// Of the processor; a GPU's is made from it.
Setting setting_here(const std::string& commit, std::uint64_t seed);

struct SuiteResult {
  std::string name, title, limit;
  Target target;
  std::vector<Measurement> measurements;
};

// Over the cases that have it; absent when none has.
struct Summary {
  std::optional<double> speed, speed_best;  // geometric means
  std::optional<double> share, row_share;   // likewise
  std::optional<double> row_copy_share;     // likewise
  const Measurement* farthest = nullptr;    // least share
  const Measurement* slowest = nullptr;     // least speed
  std::optional<double> least_naive;        // least speed over the reference engine
  std::optional<double> max_overhead;
  std::optional<double> least_apart;  // least speed over several graphs
};
Summary summary_of(const SuiteResult& result);

// "geometric mean at least 1.00, no case below 0.85"; empty when there is no target.
std::string target_text(const Target& target);
// How far a suite is from what it is meant to reach.
enum class Outcome { no_target, not_measured, missed, reached };
Outcome outcome_of(const Target& target, const Summary& summary);
std::string_view to_string(Outcome outcome);  // "not reached"; empty without a target

std::string table_head(const Setting& setting);
// Its cases need not be measured yet.
std::string suite_head(const SuiteResult& suite, const Setting& setting);
std::string table_row(const Measurement& measurement, const Setting& setting);
std::string suite_foot(const SuiteResult& suite);

std::string to_json(const Setting& setting, std::span<const SuiteResult> suites);
// What plans for `device` cost the host.
std::string to_json(const Setting& setting, const std::string& device, const HostTimes& times);
// One page without any reference to the outside.
std::string to_html(const Setting& setting, std::span<const SuiteResult> suites);

}  // namespace ashlar::bench
