// What a record says about a plan: its regions, engines and configurations.
#pragma once

#include <ashlar/inspect.hpp>
#include <string>

namespace ashlar::bench {

struct EnginesUsed {
  int regions = 0;
  std::string engines;      // each once, in execution order: "cuda.row_norm + cuda.pointwise"
  std::string configs;      // of regions that have one: "rows=4 threads=256, vector=8"
  std::string main_engine;  // the first that is not .pointwise, else the first; empty: no region
  bool is_slow = false;     // a region runs on a reference engine: minutes for large problems
};
EnginesUsed engines_used(const Inspection& inspection);

}  // namespace ashlar::bench
