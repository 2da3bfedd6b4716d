// The last-resort engine: evaluates any node from memory to memory with one double-precision loop
// nest per operation. Allocates nothing if scratch memory is provided.
#pragma once

#include <ashlar/graph.hpp>
#include <span>

namespace ashlar::reference {

// Pointers parallel to Node::inputs and Node::outputs; null for absent operands and constants. The
// offsets are those of ragged operands; a span may be empty if no operand is ragged.
struct NodeMemory {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const void* const> input_offsets = {};
  std::span<const void* const> output_offsets = {};
  void* scratch = nullptr;  // scratch_bytes() bytes, 8-byte aligned; null: allocated for the call
};

// Scratch bytes of a node's loop nest; 0 for most operations.
std::int64_t scratch_bytes(const Graph& graph, const Node& node);
void evaluate_node(const Graph& graph, const Node& node, const NodeMemory& memory);

}  // namespace ashlar::reference
