// Autotuning: the candidate configurations of each region, their measured times, and a persistent
// record of the fastest.
#pragma once

#include <ashlar/plan.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

// One candidate: an engine and a configuration for a region.
struct Trial {
  std::string engine;                                       // "cuda.gemm_sm90"
  std::vector<std::pair<std::string, std::int64_t>> knobs;  // its configuration
  double estimated = 0;                                     // seconds, by the cost model
  std::optional<double> measured = {};                      // seconds, if it was timed
  std::string failure = {};                                 // why it could not be timed
  std::string config_text() const;                          // "tile_m=128 tile_n=256"
};

struct RegionTrials {
  std::string region;         // "matmul + add"
  std::vector<Trial> trials;  // the first is what compile() selects without tuning
  std::size_t best = 0;       // index of the fastest that was timed, else 0
  bool remembered = false;    // from the tuning record: only the best has a time
};

struct TuneRequest {
  CompileOptions options = {};
  bool again = false;  // measure again even if a record exists
  // Called before every trial: "region 1 of 2: matmul, 3 of 24: cuda.gemm_sm90 tile_m=128 ...".
  std::function<void(const std::string& what)> progress = {};
};
// Times the candidates and records the fastest in the cache ($ASHLAR_CACHE), where compile() with
// CompileOptions::tune finds them, in this process and later ones. Throws Error(device) for a
// device that is not present.
std::vector<RegionTrials> autotune(const Graph& graph, const Device& device,
                                   const TuneRequest& request = {});

#pragma GCC visibility pop

}  // namespace ashlar
