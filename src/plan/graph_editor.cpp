// GraphEditor: rewriting a graph.
#include "plan/graph_editor.hpp"

#include <algorithm>
#include <bit>

#include "base/fail.hpp"

namespace ashlar {

GraphEditor::GraphEditor(Graph& graph) : graph_(graph), data_(GraphAccess::data(graph)) { index(); }

void GraphEditor::index() {
  removed_.assign(data_.nodes.size(), 0);
  consumers_.assign(data_.tensors.size(), {});
  for (std::size_t i = 0; i < data_.nodes.size(); ++i)
    for (TensorId id : data_.nodes[i].inputs)
      if (id != kNoTensor)
        consumers_[static_cast<std::size_t>(id)].push_back(static_cast<NodeId>(i));
}

NodeId GraphEditor::producer_id(TensorId id) const {
  return data_.producers[static_cast<std::size_t>(id)];
}

const Node* GraphEditor::producer(TensorId id) const {
  const NodeId node = producer_id(id);
  return node == kNoNode ? nullptr : &data_.nodes[static_cast<std::size_t>(node)];
}

const Node* GraphEditor::produced_by(TensorId id, PointwiseMode mode) const {
  const Node* node = produced_by<Pointwise>(id);
  return node && std::get<Pointwise>(node->op).mode == mode ? node : nullptr;
}

int GraphEditor::uses(TensorId id) const {
  return static_cast<int>(consumers(id).size()) + (tensor(id).kind == TensorKind::output ? 1 : 0);
}

namespace {

std::tuple<DType, std::uint64_t, int> constant_key(double value, DType dtype, int rank) {
  return {dtype, std::bit_cast<std::uint64_t>(value), rank};
}

}  // namespace

void GraphEditor::index_tensors() {
  if (!names_.empty()) return;
  for (TensorId id = 0; id < tensor_count(); ++id) {
    const Tensor& one = tensor(id);
    names_.insert(one.name);
    highest_uid_ = std::max(highest_uid_, one.uid);
    if (one.kind == TensorKind::constant && one.dims == Dims::filled(one.dims.rank(), 1))
      constants_.emplace(constant_key(one.value, one.dtype, one.dims.rank()), id);
  }
}

TensorId GraphEditor::add_tensor(Tensor tensor) {
  index_tensors();
  while (!names_.insert(tensor.name).second) tensor.name += '\'';
  tensor.uid = ++highest_uid_;
  consumers_.emplace_back();
  return graph_.add_tensor(std::move(tensor));
}

TensorId GraphEditor::add_intermediate(std::string name, const Dims& dims, DType dtype,
                                       const Dims& strides) {
  return add_tensor({.name = std::move(name), .dtype = dtype, .dims = dims, .strides = strides});
}

TensorId GraphEditor::add_constant(std::string name, double value, DType dtype, int rank) {
  return add_tensor({.name = std::move(name),
                     .kind = TensorKind::constant,
                     .dtype = dtype,
                     .dims = Dims::filled(rank, 1),
                     .value = value});
}

TensorId GraphEditor::constant(const std::string& name, double value, DType dtype, int rank) {
  index_tensors();
  const auto key = constant_key(value, dtype, rank);
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  return constants_[key] = add_constant(name, value, dtype, rank);
}

void GraphEditor::set_input(NodeId id, int slot, TensorId tensor) {
  TensorId& input = node(id).inputs[static_cast<std::size_t>(slot)];
  auto& readers = consumers_[static_cast<std::size_t>(input)];
  readers.erase(std::find(readers.begin(), readers.end(), id));
  input = tensor;
  consumers_[static_cast<std::size_t>(tensor)].push_back(id);
}

NodeId GraphEditor::add(Node node) {
  const NodeId id = graph_.add_node(std::move(node));
  index_added(id);
  return id;
}

NodeId GraphEditor::add_repeated(Node node) {
  const NodeId id = node_count();
  for (const TensorId output : node.outputs)
    if (output != kNoTensor) data_.producers[static_cast<std::size_t>(output)] = id;
  data_.nodes.push_back(std::move(node));
  index_added(id);
  return id;
}

void GraphEditor::index_added(NodeId id) {
  removed_.push_back(0);
  for (TensorId input : node(id).inputs)
    if (input != kNoTensor) consumers_[static_cast<std::size_t>(input)].push_back(id);
}

void GraphEditor::remove(NodeId id) {
  removed_[static_cast<std::size_t>(id)] = 1;
  const Node& node = data_.nodes[static_cast<std::size_t>(id)];
  for (TensorId input : node.inputs)
    if (input != kNoTensor) std::erase(consumers_[static_cast<std::size_t>(input)], id);
  for (TensorId output : node.outputs)
    if (output != kNoTensor && producer_id(output) == id)
      data_.producers[static_cast<std::size_t>(output)] = kNoNode;
}

void GraphEditor::replace_uses(TensorId from, TensorId to) {
  for (NodeId id : consumers(from)) {
    std::replace(node(id).inputs.begin(), node(id).inputs.end(), from, to);
    consumers_[static_cast<std::size_t>(to)].push_back(id);
  }
  consumers_[static_cast<std::size_t>(from)].clear();
}

void GraphEditor::move_result(TensorId from, TensorId to) {
  if (const NodeId made = producer_id(from); made != kNoNode) {
    std::ranges::replace(node(made).outputs, from, to);
    data_.producers[static_cast<std::size_t>(to)] = made;
    data_.producers[static_cast<std::size_t>(from)] = kNoNode;
  }
  replace_uses(from, to);
}

void GraphEditor::finish() {
  std::vector<Node> ordered;
  std::vector<char> state(data_.nodes.size(), 0);  // 1: being placed, 2: placed
  std::vector<NodeId> stack;
  for (NodeId root = 0; root < node_count(); ++root) {
    if (removed(root) || state[static_cast<std::size_t>(root)]) continue;
    stack.push_back(root);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      char& mark = state[static_cast<std::size_t>(id)];
      if (mark == 0) {
        mark = 1;
        for (TensorId input : node(id).inputs) {
          const NodeId before = input == kNoTensor ? kNoNode : producer_id(input);
          if (before == kNoNode || state[static_cast<std::size_t>(before)] == 2) continue;
          if (state[static_cast<std::size_t>(before)] == 1)
            fail(ErrorCode::internal, "rewriting graph '{}' created a cycle at '{}'", data_.name,
                 node(id).name);
          stack.push_back(before);
        }
      } else {
        stack.pop_back();
        if (mark == 2) continue;
        mark = 2;
        ordered.push_back(std::move(node(id)));
      }
    }
  }
  replace_nodes(std::move(ordered));
}

void GraphEditor::reorder(const std::vector<NodeId>& order) {
  std::vector<Node> ordered;
  for (const NodeId id : order) ordered.push_back(std::move(node(id)));
  replace_nodes(std::move(ordered));
}

void GraphEditor::replace_nodes(std::vector<Node> nodes) {
  data_.nodes = std::move(nodes);
  std::fill(data_.producers.begin(), data_.producers.end(), kNoNode);
  for (std::size_t i = 0; i < data_.nodes.size(); ++i)
    for (TensorId output : data_.nodes[i].outputs)
      if (output != kNoTensor)
        data_.producers[static_cast<std::size_t>(output)] = static_cast<NodeId>(i);
  index();
}

}  // namespace ashlar
