// Operands of row kernels as text.
#pragma once

#include <string>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// A struct NAME with Held, fetch and values (lib/row_tile.cuh). What memory holds is kept as it is
// where the program only loads; `is_read_once` says that caches need not keep it.
std::string print_source(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, bool is_read_once, Arguments& arguments);

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
