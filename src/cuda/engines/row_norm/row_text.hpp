// Operands of row kernels as text.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// The loads of a program whose elements a kernel may hold as memory has them, doing the program's
// work in every pass; empty where the work is too much for that or stores something.
std::vector<int> raw_loads(const PointwiseProgram& program);

// A struct NAME with Held, fetch, values and more (lib/row_operand.cuh): what raw_loads()
// gives, else the program's results.
// `materialises_prologue`: these in any case.
std::string print_source(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, Arguments& arguments, bool materialises_prologue);

// void NAME<kCount>(args, at, R (&values)[kCount]): elements of a row, or nothing where the program
// is empty.
std::string print_row_store(const PointwiseProgram& program, const Graph& graph,
                            const std::string& name, Arguments& arguments);
// void NAME(args, at, R value): one element of a statistic, or nothing where it is absent.
std::string print_statistic_store(const PointwiseProgram& program, const Graph& graph,
                                  const std::string& name, Arguments& arguments);
// R NAME(args, at): one element; `otherwise` where it is absent.
std::string print_statistic_load(const PointwiseProgram& program, const Graph& graph,
                                 const std::string& name, double otherwise, Arguments& arguments);
// R NAME(args)
std::string print_number(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, double otherwise, Arguments& arguments);

}  // namespace ashlar::cuda
