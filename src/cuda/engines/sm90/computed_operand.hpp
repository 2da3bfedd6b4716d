// A GEMM operand that producer warps compute with its prologue
// (kernels/sm90/prologue_operands.cuh).
#pragma once

#include "cuda/engines/sm90/dequantized_operand.hpp"
#include "cuda/launch/arguments.hpp"
#include "plan/engine.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct ComputedOperand {
  // Over (batch, row, k), or (batch, k, row) where along_rows.
  PointwiseProgram program;
  bool along_rows = false;                      // memory is contiguous along rows
  int vector = 1;                               // contiguous elements per load
  std::optional<DequantizedOperand> converted;  // computed by half2 conversion instead
};

// Chooses the tensor-core operand types that represent both operands exactly: their own, or wider
// ones. f32 means tf32. False: no tensor core accumulates in `compute` for them.
bool choose_math(DType a, DType b, DType compute, DType& math_a, DType& math_b);

// Stride of all axes but the last two of `dims`, merged into one. Nothing where batch strides are
// not uniform.
std::optional<std::int64_t> batch_distance(const View& view, const Dims& dims);

// `dims` are those of the result; dtype is that of the operand's tensor. `in_lines`: never
// along_rows, whatever the memory layout.
Support describe_computed(const PointwiseProgram& prologue, DType dtype, DType math, int row_axis,
                          int depth_axis, const Dims& dims, ComputedOperand& factor,
                          bool in_lines = false);

// Generates the lengths of batches: int64 NAME(args, {batch}); the extent `otherwise` where there
// are none.
std::string print_lengths(const View& lengths, const std::string& name,
                          const std::string& otherwise, const Graph& graph, Arguments& arguments);

// The constants of operand 'a' or 'b', without its program. `uses_tma`: TMA loads it where
// possible.
std::string operand_constants(const ComputedOperand* factor, DType math, char which,
                              bool uses_tma = false);
// Generates what prologue_operands.cuh needs of operand 'a' or 'b'. `factor` is null where TMA
// loads it.
std::string print_operand(const ComputedOperand* factor, DType math, char which, const Graph& graph,
                          Arguments& arguments);

}  // namespace ashlar::cuda
