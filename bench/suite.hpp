// Suites: problem lists as data. shapes/README.md describes the files.
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

// What an input is filled with, uniformly.
struct Range {
  double low = -1.0;
  double high = 1.0;
};

// A graph as text (docs/graph-json.md) and what is known about its tensors.
struct Problem {
  std::string graph;
  std::vector<std::string> constants;   // inputs whose values are known when a plan is compiled
  std::map<std::string, Range> ranges;  // inputs that are not filled as their dtype suggests
  bool tf32 = true;                     // whether f32 products may be rounded to tf32
  bool back_to_back = false;  // on GPUs also one run after the other, as layers of a model are

  Graph build() const { return Graph::from_json(graph); }
};

struct Case {
  std::string name;
  Problem problem;
  std::optional<Problem> alone;          // the same without what is fused to it
  std::optional<Problem> prepare;        // its outputs become the inputs of the same name
  std::optional<Problem> naive;          // a smaller problem, for the time of the reference engine
  std::optional<Problem> check;          // a smaller problem that the oracle can check, for GPUs
  std::optional<Problem> check_prepare;  // what `prepare` is for it
  std::vector<Problem> apart;  // the same as several graphs, each taking what the last one left
  double far = 16;  // tolerances at full size, where others round elsewhere: more is no rounding
  std::string peer_fails;  // why the peer on GPUs must not be run, empty: it may
  bool quick = false;      // one of those that stand for the suite in a short run
};

// What a suite is meant to reach; what is absent is not asked for.
struct Target {
  std::optional<double> speed = {};           // geometric mean of peer's time / our time
  std::optional<double> worst = {};           // the same of every single case
  std::optional<double> share = {};           // limit / our time, geometric mean
  std::optional<double> least_share = {};     // the same of every single case
  std::optional<double> row_share = {};       // limit / our time in a row, geometric mean
  std::optional<double> row_copy_share = {};  // copies in a row / our time in a row, likewise
  std::optional<double> naive = {};           // naive time / our time, of every case
  std::optional<double> overhead = {};        // our time / our time alone - 1, of every case
  std::optional<double> apart = {};  // our time as several graphs / our time, of every case
};

struct Suite {
  std::string name;
  std::string title;
  std::string limit;  // what limits it: a sentence for the report
  Target target;
  std::vector<Case> cases;
};

// Throws Error(parse) with the place in the document. Graphs are not built yet.
Suite read_suite(const std::string& name, std::string_view text);

// The suites of shapes/ (for processors) and shapes/cuda (for GPUs), which are part of the program.
struct SuiteText {
  DeviceKind device;
  std::string_view name;
  std::string_view text;
};
std::span<const SuiteText> built_in_suites();

// "resnet50_nhwc" is that suite; "resnet50", which is none, every suite that begins with
// "resnet50_"; a path that ends in .json that file; no name at all means all built-in suites for
// this kind of device. Names that it does not have are looked for among the others'. Throws
// Error(invalid_argument) for unknown names, Error(io) for files that cannot be read.
std::vector<Suite> choose_suites(std::span<const std::string> names,
                                 DeviceKind device = DeviceKind::cpu);

}  // namespace ashlar::bench
