// Prints the operands of row kernels as CUDA C++.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// The loads of a program whose elements a kernel may keep raw, repeating the program's arithmetic
// in every pass; empty where that is too expensive or the program stores.
std::vector<int> raw_loads(const PointwiseProgram& program);

// Prints a struct NAME with Held, fetch, values and more (lib/row_operand.cuh): it holds the
// raw_loads(), else the program's results.
// `materialises_prologue`: always the program's results.
std::string print_source(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, Arguments& arguments, bool materialises_prologue);

// void NAME<kCount>(args, at, R (&values)[kCount]): stores elements of a row; empty where the
// program is.
std::string print_row_store(const PointwiseProgram& program, const Graph& graph,
                            const std::string& name, Arguments& arguments);
// void NAME(args, at, R value): stores one element of a statistic; empty where it is absent.
std::string print_statistic_store(const PointwiseProgram& program, const Graph& graph,
                                  const std::string& name, Arguments& arguments);
// R NAME(args, at): loads one element; `otherwise` where it is absent.
std::string print_statistic_load(const PointwiseProgram& program, const Graph& graph,
                                 const std::string& name, double otherwise, Arguments& arguments);
// R NAME(args): a scalar operand; `otherwise` where it is absent.
std::string print_number(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, double otherwise, Arguments& arguments);

}  // namespace ashlar::cuda
