// Operations, numbers and types as device code writes them.
#pragma once

#include <string>
#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// "op_add<R>((R)2.0 * x, y)": an operation on numbers of type R, with its attributes.
// `is_short`: in the cheaper form that lib/pointwise.cuh has of it for results of 16 bits.
std::string operation_text(const Pointwise& op, DType compute, std::vector<std::string> operands,
                           bool is_short = false);
// "(R)0.5"
std::string literal(double value);
// "bf16()", the tag by which device code names an element type
std::string tag(DType dtype);
// "bf16", the type of that
std::string type_name(DType dtype);

}  // namespace ashlar::cuda
