// The table for people and the record for machines.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "measure.hpp"

namespace ashlar::bench {

struct Setting {
  std::string device;
  std::string peer;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // "unknown" when nobody said
  int threads = 1;
  std::uint64_t seed = 1;
  double load = 0;  // processes that wanted a processor, over the last minute, at the start
};

Setting setting_here(const std::string& commit, std::uint64_t seed);

std::string table_head(const Setting& setting);
std::string table_row(const Measurement& measurement);
// Largest ratio of the cases that have one; null when none has.
const Measurement* slowest(std::span<const Measurement> measurements);

std::string to_json(const Setting& setting, std::span<const Measurement> measurements);

}  // namespace ashlar::bench
