// The last-resort engine: scratch sizes and dispatch to the loop nests.
#include "reference/reference.hpp"

#include <variant>
#include <vector>

#include "reference/ctc.hpp"
#include "reference/evaluate.hpp"
#include "reference/multi_head_attention.hpp"
#include "reference/recurrent.hpp"

namespace ashlar::reference {

std::int64_t scratch_bytes(const Graph& graph, const Node& node) {
  const auto dims = [&](int slot) {
    return graph.tensor(node.inputs[static_cast<std::size_t>(slot)]).dims;
  };
  const auto of_rnn = [&](const auto& op) { return rnn_scratch(op, rnn_shape(op, dims)).bytes(); };
  if (const auto* forward = std::get_if<RnnForward>(&node.op)) return of_rnn(*forward);
  if (const auto* data = std::get_if<RnnBackwardData>(&node.op)) return of_rnn(*data);
  if (const auto* weights = std::get_if<RnnBackwardWeights>(&node.op)) return of_rnn(*weights);
  if (std::holds_alternative<CtcLoss>(node.op))
    return ctc_scratch(dims(CtcLoss::x), dims(CtcLoss::labels)).bytes();
  const auto of_multi_head = [&](const auto& op, bool gradients) {
    return MultiHeadArrays({op, dims(op.q), dims(op.k), dims(op.v)}, gradients).need.bytes();
  };
  if (const auto* forward = std::get_if<MultiHeadAttentionForward>(&node.op))
    return of_multi_head(*forward, false);
  if (const auto* data = std::get_if<MultiHeadAttentionBackwardData>(&node.op))
    return of_multi_head(*data, true);
  if (const auto* weights = std::get_if<MultiHeadAttentionBackwardWeights>(&node.op))
    return of_multi_head(*weights, true);
  return 0;
}

void evaluate_node(const Graph& graph, const Node& node, const NodeMemory& memory) {
  std::vector<std::int64_t> own;
  NodeMemory given = memory;
  if (given.scratch == nullptr) {
    own.resize(static_cast<std::size_t>(scratch_bytes(graph, node) / 8));
    given.scratch = own.data();
  }
  const MemoryOperands operands(graph, node, given);
  std::visit([&](const auto& op) { evaluate(op, operands); }, node.op);
}

}  // namespace ashlar::reference
