// Scratch memory of the CTC loss.
#pragma once

#include "reference/scratch.hpp"

namespace ashlar::reference {

// Two values per time step and two per (time step, state), for one sequence at a time.
inline ScratchNeed ctc_scratch(const Dims& x, const Dims& labels) {
  const std::int64_t longest = labels.rank() == 1 ? labels[0] : labels[1];
  return {.numbers = 2 * x[0] * (1 + 2 * longest + 1)};
}

}  // namespace ashlar::reference
