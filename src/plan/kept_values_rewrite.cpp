// KeptValues::rewritten: adds the nodes that compute values again.
#include <algorithm>

#include "graph/op_traits.hpp"
#include "plan/graph_editor.hpp"
#include "plan/kept_values.hpp"

namespace ashlar {

namespace {

// Repeats nodes of a graph and their tensors.
class Repeater {
 public:
  Repeater(LoweredGraph& lowered, const std::vector<bool>& needed)
      : lowered_(lowered),
        editor_(lowered.graph),
        needed_(needed),
        copies_(needed.size(), kNoTensor) {}

  // Adds a copy of the node, of its needed outputs only. Operands that are computed again have been
  // repeated before.
  NodeId repeat(NodeId id) {
    Node copy = editor_.node(id);
    copy.name += kRecomputedSuffix;
    for (TensorId& input : copy.inputs) input = operand(input);
    const OpTraits& traits = traits_of(copy.op);
    for (std::size_t slot = 0; slot < copy.outputs.size(); ++slot) {
      TensorId& output = copy.outputs[slot];
      if (output == kNoTensor) continue;
      const TensorId original = output;
      const bool is_needed = needed_[static_cast<std::size_t>(original)];
      if (!is_needed && traits.outputs[slot].need == Slot::Need::optional) {
        output = kNoTensor;
        continue;
      }
      output = add_like(original);
      lowered_.views.push_back(view_of(lowered_.graph, output));
      if (is_needed) copies_[static_cast<std::size_t>(original)] = output;
    }
    return editor_.add_repeated(std::move(copy));
  }

  void redirect(NodeId reader) {
    for (int slot = 0; std::cmp_less(slot, editor_.node(reader).inputs.size()); ++slot) {
      const TensorId input = editor_.node(reader).inputs[static_cast<std::size_t>(slot)];
      if (const TensorId copy = operand(input); copy != input)
        editor_.set_input(reader, slot, copy);
    }
  }

  void reorder(const std::vector<NodeId>& order) { editor_.reorder(order); }

 private:
  // The tensor to read instead of `id`: itself unless its memory is computed again.
  TensorId operand(TensorId id) {
    if (id == kNoTensor) return id;
    const View view = lowered_.views[static_cast<std::size_t>(id)];
    if (std::cmp_greater_equal(view.tensor, needed_.size()) ||
        !needed_[static_cast<std::size_t>(view.tensor)])
      return id;
    TensorId& copy = copies_[static_cast<std::size_t>(id)];
    if (copy != kNoTensor) return copy;
    copy = add_like(id);
    lowered_.views.push_back(view);
    lowered_.views.back().tensor = copies_[static_cast<std::size_t>(view.tensor)];
    return copy;
  }

  TensorId add_like(TensorId id) {
    const Tensor tensor = editor_.tensor(id);
    return editor_.add_intermediate(tensor.name + std::string(kRecomputedSuffix), tensor.dims,
                                    tensor.dtype, tensor.strides);
  }

  LoweredGraph& lowered_;
  GraphEditor editor_;
  const std::vector<bool>& needed_;
  std::vector<TensorId> copies_;  // by tensor
};

}  // namespace

// By node that is computed again: the late node before which it is.
std::vector<NodeId> KeptValues::first_readers(const std::vector<bool>& needed) const {
  const auto nodes = static_cast<NodeId>(lowered_.graph.nodes().size());
  std::vector<NodeId> first(static_cast<std::size_t>(nodes), nodes);
  const auto is_repeated = [&](NodeId id) {
    return std::ranges::any_of(node(id).outputs, [&](TensorId output) {
      return output != kNoTensor && needed[static_cast<std::size_t>(output)];
    });
  };
  // What is computed again is early: every reader comes before its operands.
  for (NodeId id = nodes; id-- > 0;) {
    const NodeId reader = is_late(id) ? id : first[static_cast<std::size_t>(id)];
    if (!is_late(id) && !is_repeated(id)) continue;
    for (const TensorId input : node(id).inputs) {
      if (input == kNoTensor || !needed[static_cast<std::size_t>(root(input))]) continue;
      NodeId& earliest = first[static_cast<std::size_t>(producer(root(input)))];
      earliest = std::min(earliest, reader);
    }
  }
  return first;
}

LoweredGraph KeptValues::rewritten(std::span<const Recomputed> groups,
                                   const std::vector<bool>& checkpoints) const {
  std::vector<TensorId> values;
  for (const Recomputed& group : groups)
    values.insert(values.end(), group.values.begin(), group.values.end());
  const std::vector<bool> needed = needed_for(values, all_that_stays(checkpoints));
  const std::vector<NodeId> first = first_readers(needed);
  const auto nodes = static_cast<NodeId>(lowered_.graph.nodes().size());
  LoweredGraph result{lowered_.graph.clone(), lowered_.views, lowered_.notes};
  Repeater repeater(result, needed);
  std::vector<std::vector<NodeId>> before(first.size());  // by late node: copies of nodes
  for (NodeId id = 0; id < nodes; ++id)
    if (const NodeId reader = first[static_cast<std::size_t>(id)]; reader < nodes)
      before[static_cast<std::size_t>(reader)].push_back(repeater.repeat(id));
  std::vector<NodeId> order;
  for (NodeId id = 0; id < nodes; ++id) {
    const auto& copies = before[static_cast<std::size_t>(id)];
    order.insert(order.end(), copies.begin(), copies.end());
    order.push_back(id);
    if (is_late(id)) repeater.redirect(id);
  }
  repeater.reorder(order);

  result.late.assign(result.graph.tensors().size(), true);
  for (NodeId id = 0; id < nodes; ++id)
    if (!is_late(id))
      for (const TensorId output : node(id).outputs)
        if (output != kNoTensor) result.late[static_cast<std::size_t>(output)] = false;
  return result;
}

}  // namespace ashlar
