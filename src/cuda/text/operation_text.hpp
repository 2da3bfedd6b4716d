// Prints pointwise operations, literals and type names as CUDA C++.
#pragma once

#include <string>
#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// "op_add<R>((R)2.0 * x, y)": an operation on operands of type R, with its attributes.
// `is_short`: the cheaper approximation of lib/pointwise.cuh for 16-bit results.
std::string operation_text(const Pointwise& op, DType compute, std::vector<std::string> operands,
                           bool is_short = false);
// "(R)0.5"
std::string literal(double value);
// "bf16()", the tag by which device code names an element type
std::string tag(DType dtype);
// "bf16", the type of that
std::string type_name(DType dtype);

}  // namespace ashlar::cuda
