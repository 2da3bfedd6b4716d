// Reads the records of `ashlar bench --configs`, with the cases they were measured on.
#pragma once

#include <ashlar/tune.hpp>
#include <optional>
#include <string>
#include <vector>

#include "suite.hpp"

namespace ashlar::bench {

struct RecordedCase {
  std::string suite;
  Case problem;
  std::string region;
  std::vector<Trial> trials;  // that ran and gave correct results
  // Seconds per run back to back of each trial, if timed.
  std::vector<std::optional<double>> back_to_back;

  double fastest() const;  // seconds
  // The recorded trial with the same engine and knobs; null if it was not timed.
  const Trial* find(const Trial& trial) const;
};

// From every configs_*.json in a folder; cases that no longer exist are skipped. Throws Error(io)
// for a file that cannot be read or parsed.
std::vector<RecordedCase> recorded_cases(const std::string& folder);

}  // namespace ashlar::bench
