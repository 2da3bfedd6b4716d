// What a product's epilogue reads beside its sums, as text for sm90/residual_prefetch.cuh.
#pragma once

#include <optional>
#include <string>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// kResidualLines, kResidualLineColumns and ahead(): the lines of 128 bytes of all tensors that the
// program reads element by element along its last axis, for tiles of so many columns. What is
// smaller than the results is in the caches anyway.
std::string print_residual_prefetch(const PointwiseProgram& epilogue, int tile_columns,
                                    const Graph& graph, Arguments& arguments);

// What of the program's tensors is brought in the boxes of its first results: one as large as these
// and no other, with elements as wide, in whole packets of 16 bytes; nothing where there is none.
std::optional<View> residual_view(const PointwiseProgram& epilogue, int vector, const Graph& graph);

}  // namespace ashlar::cuda
