// Choosing by measurement: what could run each region of a graph, how long each takes here, and
// winners that are remembered.
#pragma once

#include <ashlar/plan.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ashlar {

// One way to run a region.
struct Trial {
  std::string engine;                                       // "cuda.gemm_sm90"
  std::vector<std::pair<std::string, std::int64_t>> knobs;  // its configuration
  double estimated = 0;                                     // seconds, by the cost model
  std::optional<double> measured = {};                      // seconds, where it was timed
  std::string failure = {};                                 // why it was not
  std::string config_text() const;                          // "tile_m=128 tile_n=256"
};

struct RegionTrials {
  std::string region;         // "matmul + add"
  std::vector<Trial> trials;  // the first is what compile() takes without tuning
  std::size_t best = 0;       // the fastest that was timed, else the first
  bool remembered = false;    // from an earlier tuning: only the best has a time
};

// What tuning would time, region by region, for a device that need not be present.
std::vector<RegionTrials> candidates(const Graph& graph, const Device& device,
                                     const CompileOptions& options = {});

struct TuneRequest {
  CompileOptions options = {};
  bool again = false;  // also where a winner is remembered
  // Called before every trial: "region 1 of 2: matmul, 3 of 24: cuda.gemm_sm90 tile_m=128 ...".
  std::function<void(const std::string& what)> progress = {};
};
// Times the candidates here and remembers the winners in the cache ($ASHLAR_CACHE): compile() with
// CompileOptions::tune takes them from there, in this process and later ones. Throws Error(device)
// for a device that is not present.
std::vector<RegionTrials> tune(const Graph& graph, const Device& device,
                               const TuneRequest& request = {});

}  // namespace ashlar
