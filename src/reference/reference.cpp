// The last-resort engine: scratch sizes and dispatch to the loop nests.
#include "reference/reference.hpp"

#include <variant>
#include <vector>

#include "reference/evaluate.hpp"

namespace ashlar::reference {

std::int64_t scratch_bytes(const Graph& graph, const Node& node) {
  const InputDims dims = [&](int slot) {
    return graph.tensor(node.inputs[static_cast<std::size_t>(slot)]).dims;
  };
  return std::visit([&](const auto& op) { return scratch_need(op, dims).bytes(); }, node.op);
}

void evaluate_node(const Graph& graph, const Node& node, const NodeMemory& memory) {
  std::vector<std::int64_t> own;
  NodeMemory given = memory;
  if (given.scratch == nullptr) {
    own.resize(static_cast<std::size_t>(scratch_bytes(graph, node) / 8));
    given.scratch = own.data();
  }
  const MemoryOperands operands(graph, node, given);
  std::visit([&](const auto& op) { evaluate_op(op, operands); }, node.op);
}

}  // namespace ashlar::reference
