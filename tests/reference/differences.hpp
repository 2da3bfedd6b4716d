// gradients() of a graph against central differences, in f64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/harness.hpp"

namespace ashlar::reference {

// Adds inputs, operations and the result to a graph; returns the result and the values to
// differentiate with respect to.
struct Function {
  Value y;
  std::vector<Value> wrt;
};
using Build = std::function<Function(Graph&)>;
using FillInputs = std::function<void(Evaluation&)>;

struct DifferenceReport {
  int compared = 0;
  int undecided = 0;  // directions in which differences did not converge: a kink is near
  std::string wrong;  // empty: all gradients match
};

// Compares the derivative of sum(dy * y), for a random dy, along one random direction of each value
// of `wrt`. `fill` overwrites random inputs in [low, high].
DifferenceReport compare_with_differences(const Build& build, std::uint64_t seed, double low = -1.0,
                                          double high = 1.0, const FillInputs& fill = {});

inline void expect_matching_gradients(const Build& build, double low = -1.0, double high = 1.0,
                                      const FillInputs& fill = {}) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const DifferenceReport report = compare_with_differences(build, seed, low, high, fill);
    EXPECT_EQ(report.wrong, "") << "seed " << seed;
    compared += report.compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace ashlar::reference
