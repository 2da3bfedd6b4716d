// Suites: lists of benchmark problems as JSON files (shapes/README.md describes the format).
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::bench {

// Inputs are uniformly distributed in [low, high].
struct Range {
  double low = -1.0;
  double high = 1.0;
};

// A graph as JSON (docs/graph-json.md) and facts about its tensors.
struct Problem {
  std::string graph;
  std::vector<std::string> constants;   // inputs whose values are known when a plan is compiled
  std::map<std::string, Range> ranges;  // of inputs that do not use their dtype's default
  bool tf32 = true;                     // whether f32 operands may be rounded to tf32
  bool back_to_back = false;            // on GPUs: also time runs back to back

  Graph build() const { return Graph::from_json(graph); }
};

struct Case {
  std::string name;
  Problem problem;
  std::optional<Problem> alone;          // the same without the fused operations
  std::optional<Problem> prepare;        // runs first; its outputs become inputs of the same name
  std::optional<Problem> naive;          // GPUs: a smaller problem, for the time of cuda.generic
  std::optional<Problem> check;          // GPUs: a smaller problem for the oracle
  std::optional<Problem> check_prepare;  // `prepare` of `check`
  std::vector<Problem> apart;  // the same work as several graphs; each reads earlier outputs
  double far = 16;             // tolerances at full size beyond which a difference is no rounding
  std::string peer_fails;      // why the peer on GPUs must not run; empty: it may
  bool quick = false;          // part of a --quick run
};

// Targets of a suite; absent ones are not judged.
struct Target {
  std::optional<double> speed = {};        // peer's time / our time, geometric mean
  std::optional<double> worst = {};        // the same, of every case
  std::optional<double> share = {};        // roofline / our time, geometric mean
  std::optional<double> least_share = {};  // the same, of every case
  // Roofline, and a copy with the same traffic back to back, / our time back to back; geometric
  // means.
  std::optional<double> share_back_to_back = {};
  std::optional<double> copy_share_back_to_back = {};
  std::optional<double> naive = {};     // GPU: time of cuda.generic / our time, of every case
  std::optional<double> overhead = {};  // our time / our time alone - 1, of every case
  std::optional<double> apart = {};     // our time as several graphs / our time, of every case
};

struct Suite {
  std::string name;
  std::string title;
  std::string bound_by;  // what bounds it (compute, memory, ...): a sentence for the report
  Target target;
  std::vector<Case> cases;
};

// Throws Error(parse) with the location in the document. Graphs are not built yet.
Suite read_suite(const std::string& name, std::string_view text);

// The suites of shapes/ (CPU) and shapes/cuda (GPUs), embedded in the program.
struct SuiteText {
  DeviceKind device;
  std::string_view name;
  std::string_view text;
};
std::span<const SuiteText> built_in_suites();

// A name is a suite ("resnet50_nhwc"), the prefix of several ("resnet50" for "resnet50_*") or the
// path of a .json file; no names: all built-in suites of this kind of device. A name that this kind
// lacks may be a suite of the other kind. Throws Error(invalid_argument) for unknown names,
// Error(io) for files that cannot be read.
std::vector<Suite> choose_suites(std::span<const std::string> names,
                                 DeviceKind device = DeviceKind::cpu);

}  // namespace ashlar::bench
