// Regions, engines and configurations of a plan, parsed from Plan::explain().
#pragma once

#include <string>
#include <string_view>

namespace ashlar::bench {

struct Outline {
  int regions = 0;
  std::string engines;  // each once, in execution order: "cuda.row_norm + cuda.pointwise"
  std::string configs;  // of regions that have one: "rows=4 threads=256, vector=8"
};
Outline outline_of(std::string_view explanation);
// Whether a region runs on a reference engine, which takes minutes for large problems.
bool is_slow(const Outline& outline);
// The engine to request when a smaller problem must run on the same one: the first that is not
// .pointwise, else the first. Empty if there is none.
std::string main_engine(const Outline& outline);

}  // namespace ashlar::bench
