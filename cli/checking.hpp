// Comparing what a plan wrote with the oracle.
#pragma once

#include <ashlar/check.hpp>
#include <string>
#include <vector>

#include "tensor_memory.hpp"

namespace ashlar::cli {

struct CheckReport {
  bool ok = true;
  std::string headline;              // "check: ok, worst error 3.1e-4, bound 9.8e-4"
  std::vector<std::string> details;  // one sentence per output
};

// Evaluates the graph in double precision on the same inputs and compares every output.
CheckReport check_outputs(const TensorMemory& memory, const PlanNotes& notes);

// Throws Error(internal) naming the tensor when bytes around a buffer were overwritten.
void require_intact_guards(const TensorMemory& memory);

}  // namespace ashlar::cli
