// Operands that never change (CompileOptions::constants).
#pragma once

#include <algorithm>

#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// Whether everything an operand is made of is known to `constants` (see Kernel::keep_constants).
inline bool is_constant(const PointwiseProgram& operand, const KernelContext& constants) {
  using Step = PointwiseProgram::Step;
  return !operand.empty() &&
         std::all_of(operand.steps.begin(), operand.steps.end(), [&](const Step& step) {
           return step.kind != Step::Kind::load || constants.pointer(step.view.tensor) != nullptr;
         });
}

}  // namespace ashlar::cpu
