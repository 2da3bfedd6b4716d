// Random numbers and dropout as steps of a program. Each returns the number of its value.
#pragma once

#include "plan/pointwise_program.hpp"

namespace ashlar {

// The numbers of `op` by row-major position in the program's space; seed and offset may be absent.
int push_random(PointwiseProgram& program, const Rng& op, const View& seed, const View& offset);

// What dropout draws: 1 where an element is kept.
Rng keeps(const DropoutAttributes& op);

// x / (1 - probability) where kept, else 0; of what is dropped for certain nothing is left.
int push_dropped(PointwiseProgram& program, int x, int kept, double probability, DType compute);

}  // namespace ashlar
