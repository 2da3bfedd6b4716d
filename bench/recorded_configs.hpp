// What `ashlar bench --configs` recorded, with the problems it was recorded for.
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
  std::vector<Trial> trials;  // those that ran and gave the right results
  // Seconds of each of them in a row, where that was timed.
  std::vector<std::optional<double>> back_to_back;

  double fastest() const;  // seconds
  // The recorded form of a configuration; null: it was not timed.
  const Trial* find(const Trial& trial) const;
};

// Of every configs_*.json in a folder, without cases that no suite has any more. Throws Error(io)
// for a file that cannot be read or understood.
std::vector<RecordedCase> recorded_cases(const std::string& folder);

}  // namespace ashlar::bench
