// The table for people, the record for machines, the page for both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure.hpp"

namespace ashlar::bench {

struct Setting {
  std::string device;
  std::string peer;    // empty when oneDNN was not built in
  std::string date;    // UTC, ISO 8601
  std::string commit;  // "unknown" when nobody said
  int threads = 1;
  std::uint64_t seed = 1;
  double load = 0;  // processes that wanted a processor, over the last minute, at the start
};

Setting setting_here(const std::string& commit, std::uint64_t seed);

struct SuiteResult {
  std::string name, title, limit;
  Target target;
  std::vector<Measurement> measurements;
};

// Over the cases that have it; absent when none has.
struct Summary {
  std::optional<double> speed, speed_best;  // geometric means
  std::optional<double> share;              // likewise
  const Measurement* slowest = nullptr;     // least speed
  std::optional<double> least_naive;        // least speed over the reference engine
  std::optional<double> most_overhead;
};
Summary summary_of(const SuiteResult& result);

// "geometric mean at least 1.00, no case below 0.85"; empty when there is no target.
std::string target_text(const Target& target);
// Whether all that the target asks for was measured and reached.
bool reached(const Target& target, const Summary& summary);

std::string table_head(const Setting& setting);
std::string suite_head(const SuiteResult& suite);  // its cases need not be measured yet
std::string table_row(const Measurement& measurement);
std::string suite_foot(const SuiteResult& suite);

std::string to_json(const Setting& setting, std::span<const SuiteResult> suites);
// One page without any reference to the outside.
std::string to_html(const Setting& setting, std::span<const SuiteResult> suites);

}  // namespace ashlar::bench
