// Appends rng and dropout steps to a program. Each function returns the new value number.
#pragma once

#include "plan/pointwise_program.hpp"

namespace ashlar {

// The random values of `op` by row-major position in the program's space; seed and offset may be
// absent.
int push_random(PointwiseProgram& program, const Rng& op, const View& seed, const View& offset);

// The Bernoulli distribution of dropout's keep mask.
Rng keeps(const DropoutAttributes& op);

// x / (1 - probability) where kept, else 0; all 0 for probability 1.
int push_dropped(PointwiseProgram& program, int x, int kept, double probability, DType compute);

}  // namespace ashlar
