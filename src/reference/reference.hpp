// The last-resort engine: any node, straight from memory to memory, one loop nest per operation in
// double precision. Allocates nothing, but for the table of states of ctc_loss.
#pragma once

#include <ashlar/graph.hpp>
#include <span>

namespace ashlar::reference {

// Pointers parallel to Node::inputs and Node::outputs; null where an operand is absent, and for
// constants. The offsets are those of ragged operands; a span may be empty when no operand is
// ragged.
struct NodeMemory {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const void* const> input_offsets = {};
  std::span<const void* const> output_offsets = {};
};

void evaluate_node(const Graph& graph, const Node& node, const NodeMemory& memory);

}  // namespace ashlar::reference
