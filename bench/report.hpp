// Reports of a run: the printed table, the JSON record and the HTML page.
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
  std::string peer;    // "oneDNN 2.6.3"; empty if there is none
  std::string date;    // UTC, ISO 8601
  std::string commit;  // "unknown" if not given
  int threads = 1;
  std::uint64_t seed = 1;
  double load = 0;  // load average over the last minute, at the start
  bool gpu = false;
  std::string driver = {};  // of a GPU
  double copy_speed = 0;    // of a GPU: bytes per second, reads plus writes
  bool tune = false;        // our plans were tuned

  const char* peer_name() const { return gpu ? "cuDNN" : "oneDNN"; }
};

// The setting of the CPU; that of a GPU starts from it.
Setting setting_here(const std::string& commit, std::uint64_t seed);

struct SuiteResult {
  std::string name, title, bound_by;
  Target target;
  std::vector<Measurement> measurements;
};

// Each figure is over the cases that have it; absent if none has.
struct Summary {
  std::optional<double> speed, speed_best;          // geometric means
  std::optional<double> share, share_back_to_back;  // likewise
  std::optional<double> copy_share_back_to_back;    // likewise
  const Measurement* farthest = nullptr;            // lowest share of the roofline
  const Measurement* slowest = nullptr;             // lowest speed
  std::optional<double> least_naive;                // GPU: lowest speed over cuda.generic
  std::optional<double> max_overhead;
  std::optional<double> least_apart;  // lowest speed over several graphs
};
Summary summary_of(const SuiteResult& result);

// "geometric mean at least 1.00, no case below 0.85"; empty if there is no target.
std::string target_text(const Target& target);
// Whether a suite reaches its target.
enum class Outcome { no_target, not_measured, missed, reached };
Outcome outcome_of(const Target& target, const Summary& summary);
std::string_view to_string(Outcome outcome);  // "not reached"; empty without a target

std::string table_head(const Setting& setting);
// May be called before its cases are measured.
std::string suite_head(const SuiteResult& suite, const Setting& setting);
std::string table_row(const Measurement& measurement, const Setting& setting);
std::string suite_foot(const SuiteResult& suite);

std::string to_json(const Setting& setting, std::span<const SuiteResult> suites);
// Host overhead of plans for `device`.
std::string to_json(const Setting& setting, const std::string& device, const HostTimes& times);
// One self-contained page.
std::string to_html(const Setting& setting, std::span<const SuiteResult> suites);

}  // namespace ashlar::bench
