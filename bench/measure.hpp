// One case: filled, run by both sides, checked, timed.
#pragma once

#include <ashlar/graph.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cases.hpp"

namespace ashlar::bench {

struct MeasureOptions {
  double seconds = 1.0;    // of timing, both sides together
  std::int64_t least = 7;  // samples of each side, however long they take
  std::uint64_t seed = 1;  // of the inputs
  bool oracle = false;     // check every case against the oracle
  bool naive = true;       // time the reference engine where that is quick
};

struct Measurement {
  std::string name;
  double ours = 0;             // median seconds of one run
  double ours_least = 0;       // seconds of the fastest sample
  std::optional<double> peer;  // absent when oneDNN does not do this
  std::optional<double> peer_least;
  bool peer_reference = false;  // oneDNN has only its plain loops for this
  std::optional<double> naive;
  std::int64_t samples = 0;
  double arithmetic = 0;  // operations, 0 when the case is about bytes
  double traffic = 0;     // bytes
  bool ok = false;        // the outputs are right; nothing is timed otherwise
  std::string check;      // what they were compared with, and how far off they were
  std::string engine;     // of ours
  std::string peer_implementation;

  std::optional<double> ratio() const { return peer ? std::optional(ours / *peer) : std::nullopt; }
};

// Says what it is doing through `progress`.
Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress);

}  // namespace ashlar::bench
