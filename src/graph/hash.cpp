// Structural hash: a computed tensor hashes its producer; an input hashes its description and its
// number, which distinguishes inputs with equal descriptions.
#include <algorithm>

#include "base/digest.hpp"
#include "graph/attribute_words.hpp"
#include "graph/graph_data.hpp"
#include "graph/visit_attributes.hpp"

namespace ashlar {

namespace {

struct DigestSink {
  Digest& digest;
  void operator()(std::uint64_t word) const { digest.add(word); }
};
using AttributeHasher = AttributeWords<DigestSink>;

class GraphHasher {
 public:
  explicit GraphHasher(const GraphData& graph) : graph_(graph) {}

  std::uint64_t hash() {
    // Inputs are numbered in the order of a traversal from the outputs, so that insertion order
    // does not matter. Outputs are sorted by their hashes of a first pass without numbers; ties
    // keep their order.
    std::vector<std::uint64_t> numbers(graph_.tensors.size(), 0);
    const auto unnumbered = tensor_hashes(numbers);
    auto outputs = all_outputs();
    std::stable_sort(outputs.begin(), outputs.end(),
                     [&](std::size_t a, std::size_t b) { return unnumbered[a] < unnumbered[b]; });
    number_inputs(outputs, numbers);
    const auto hashes = tensor_hashes(numbers);
    Digest digest;
    for (std::size_t output : outputs) digest.add(hashes[output]);
    return digest.value();
  }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  std::vector<std::size_t> all_outputs() const {
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i)
      if (graph_.tensors[i].kind == TensorKind::output) outputs.push_back(i);
    return outputs;
  }

  // Depth-first from the outputs, operands in slot order. The stack is explicit: deep graphs would
  // overflow the call stack.
  void number_inputs(const std::vector<std::size_t>& outputs,
                     std::vector<std::uint64_t>& numbers) const {
    std::vector<bool> seen(graph_.tensors.size());
    std::vector<std::size_t> stack(outputs.rbegin(), outputs.rend());
    std::uint64_t next = 0;
    while (!stack.empty()) {
      const std::size_t i = stack.back();
      stack.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      const TensorId offsets = graph_.tensors[i].ragged_offset;
      const NodeId producer = graph_.producers[i];
      if (producer == kNoNode) {
        if (graph_.tensors[i].kind != TensorKind::constant) numbers[i] = ++next;
      } else {
        const auto& inputs = graph_.nodes[static_cast<std::size_t>(producer)].inputs;
        for (auto id = inputs.rbegin(); id != inputs.rend(); ++id)
          if (*id != kNoTensor) stack.push_back(index(*id));
      }
      if (offsets != kNoTensor) stack.push_back(index(offsets));
    }
  }

  std::vector<std::uint64_t> tensor_hashes(const std::vector<std::uint64_t>& numbers) const {
    std::vector<std::uint64_t> hashes(graph_.tensors.size());
    const auto describe = [&](Digest& digest, std::size_t i) {
      const Tensor& tensor = graph_.tensors[i];
      AttributeHasher hasher{{digest}};
      digest.add(static_cast<std::uint64_t>(tensor.kind));
      digest.add(static_cast<std::uint64_t>(tensor.dtype));
      hasher.add(tensor.dims);
      hasher.add(tensor.strides);
      // Constants are distinguished by value alone.
      if (tensor.kind == TensorKind::constant)
        hasher.add(tensor.value);
      else
        digest.add(numbers[i]);
      digest.add(tensor.ragged_offset == kNoTensor ? 0 : 1 + numbers[index(tensor.ragged_offset)]);
    };
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.producers[i] != kNoNode) continue;
      Digest digest;
      describe(digest, i);
      hashes[i] = digest.value();
    }
    for (const Node& node : graph_.nodes) {
      Digest node_digest;
      node_digest.add(node.op.index());
      node_digest.add(static_cast<std::uint64_t>(node.compute));
      visit_attributes(node.op, AttributeHasher{{node_digest}});
      node_digest.add(node.inputs.size());
      for (TensorId id : node.inputs) node_digest.add(id == kNoTensor ? 0 : hashes[index(id)]);
      for (std::size_t slot = 0; slot < node.outputs.size(); ++slot) {
        if (node.outputs[slot] == kNoTensor) continue;
        Digest digest;
        digest.add(node_digest.value());
        digest.add(slot);
        describe(digest, index(node.outputs[slot]));
        hashes[index(node.outputs[slot])] = digest.value();
      }
    }
    return hashes;
  }

  const GraphData& graph_;
};

}  // namespace

std::uint64_t Graph::structural_hash() const { return GraphHasher(*data_).hash(); }

}  // namespace ashlar
