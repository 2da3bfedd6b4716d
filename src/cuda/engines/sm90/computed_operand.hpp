// A factor of a product that kernels/sm90/prologue_operands.cuh makes from its program on the way
// in.
#pragma once

#include "cuda/engines/sm90/dequantized_operand.hpp"
#include "cuda/launch/arguments.hpp"
#include "plan/engine.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct ComputedOperand {
  // Over (batch, row, depth), or (batch, depth, row) where along_rows.
  PointwiseProgram program;
  bool along_rows = false;                      // elements lie together along the rows
  int vector = 1;                               // neighbours that are loaded together
  std::optional<DequantizedOperand> converted;  // how it is computed instead, by pairs
};

// The types in which matrix units multiply two factors without changing them: their own, or wider
// ones that hold them. f32 means tf32. False: no unit gives sums of `compute`.
bool choose_math(DType a, DType b, DType compute, DType& math_a, DType& math_b);

// All axes before the last two as one, of `dims`: its distance. Nothing where they are not at one
// distance.
std::optional<std::int64_t> batch_distance(const View& view, const Dims& dims);

// `dims` are those of the result; dtype that of the factor's tensor. `in_lines`: not along_rows,
// however its elements lie.
Support describe_computed(const PointwiseProgram& prologue, DType dtype, DType math, int row_axis,
                          int depth_axis, const Dims& dims, ComputedOperand& factor,
                          bool in_lines = false);

// Lengths of batches: int64 NAME(args, {batch}), the extent `otherwise` where there are none.
std::string print_lengths(const View& lengths, const std::string& name,
                          const std::string& otherwise, const Graph& graph, Arguments& arguments);

// The constants of factor 'a' or 'b', without its program. `uses_tma`: where it can, the copy
// engine brings it nevertheless.
std::string operand_constants(const ComputedOperand* factor, DType math, char which,
                              bool uses_tma = false);
// What prologue_operands.cuh wants to be told about factor 'a' or 'b'. `factor` is null where the
// copy engine brings it.
std::string print_operand(const ComputedOperand* factor, DType math, char which, const Graph& graph,
                          Arguments& arguments);

}  // namespace ashlar::cuda
