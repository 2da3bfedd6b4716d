// Generates the kernel text for the residual prefetch of sm90/residual_prefetch.cuh.
#pragma once

#include <optional>
#include <string>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// kResidualLines, kResidualLineColumns and prefetch_residual_lines(): the 128-byte lines of all
// tensors that the program reads element by element along its last axis, for tiles of
// `tile_columns` columns. Tensors smaller than the result are in the caches anyway.
std::string print_residual_prefetch(const PointwiseProgram& epilogue, int tile_columns,
                                    const Graph& graph, Arguments& arguments);

// The residual that can be loaded in the layout of the first result's subtiles: the only operand of
// the result's shape, with its element width, in whole 16-byte packets; nothing where there is
// none.
std::optional<View> residual_view(const PointwiseProgram& epilogue, int vector, const Graph& graph);

}  // namespace ashlar::cuda
