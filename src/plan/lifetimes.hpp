// When the intermediates of a plan are in memory.
#pragma once

#include <vector>

#include "plan/region.hpp"

namespace ashlar {

struct Lifetime {
  TensorId tensor = kNoTensor;
  std::vector<int> steps;  // that write or read it, ascending
};

class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph) : graph_(graph), position_(graph.tensors().size(), -1) {}
  // The region of the next step.
  void add(const Region& region);
  // In the order of their first steps.
  const std::vector<Lifetime>& all() const { return all_; }

 private:
  void add_step(Lifetime& lifetime) const {
    if (lifetime.steps.empty() || lifetime.steps.back() != step_) lifetime.steps.push_back(step_);
  }

  const Graph& graph_;
  std::vector<int> position_;  // by tensor, in all_; -1: not in memory
  std::vector<Lifetime> all_;
  int step_ = 0;
};

}  // namespace ashlar
