#include "reference/reference.hpp"

#include <variant>

#include "reference/evaluate.hpp"

namespace ashlar::reference {

void evaluate_node(const Graph& graph, const Node& node, const NodeMemory& memory) {
  const MemoryOperands operands(graph, node, memory);
  std::visit([&](const auto& op) { evaluate(op, operands); }, node.op);
}

}  // namespace ashlar::reference
