// Which plan of the library was the fastest for a graph, kept in a file: the search among all its
// engines takes seconds per case, a second run of the same cases needs none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

struct PlanChoice {
  std::int64_t engine = 0;
  std::vector<std::pair<int, std::int64_t>> knobs = {};  // types by number, and values
  int timed = 0;                                         // plans that it was the fastest of
  std::string refusal = {};                              // no plan at all: why
};

class RememberedPlans {
 public:
  // Reads the file if there is one. Throws Error(parse) when it is not one of these.
  explicit RememberedPlans(std::string path);

  const PlanChoice* find(const std::string& key) const;
  // Writes the file anew: a library may end the process at the next case. Throws Error(io).
  void remember(const std::string& key, PlanChoice choice);

 private:
  const std::string path_;
  std::map<std::string, PlanChoice> choices_;
};

// A stretch of a graph in few characters; graphs that differ in anything have other ones.
std::string key_of(const Stretch& stretch, bool tf32);

}  // namespace ashlar::bench::cudnn
