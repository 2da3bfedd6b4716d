// What a plan is made of, read from its explanation.
#pragma once

#include <string>
#include <string_view>

namespace ashlar::bench {

struct Outline {
  int regions = 0;
  std::string engines;  // each once, in the order they run: "cuda.row_norm + cuda.pointwise"
  std::string configs;  // of the regions that have one: "rows=4 threads=256, vector=8"
};
Outline outline_of(std::string_view explanation);
// Whether one of them is the reference, or the processor in place of a GPU: minutes for large
// problems.
bool is_slow(const Outline& outline);
// The one to ask for where a smaller problem is to run on the same engine: the first that is not
// for pointwise work alone. Empty: none.
std::string main_engine(const Outline& outline);

}  // namespace ashlar::bench
