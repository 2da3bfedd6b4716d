// Graph rewriting: query producers and consumers, remove and add nodes, then restore the
// topological order with finish().
#pragma once

#include <ashlar/graph.hpp>
#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "graph/graph_data.hpp"

namespace ashlar {

class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph);

  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  TensorId tensor_count() const { return static_cast<TensorId>(data_.tensors.size()); }
  NodeId node_count() const { return static_cast<NodeId>(data_.nodes.size()); }
  const Node& node(NodeId id) const { return data_.nodes[static_cast<std::size_t>(id)]; }
  Node& node(NodeId id) { return data_.nodes[static_cast<std::size_t>(id)]; }
  bool removed(NodeId id) const { return removed_[static_cast<std::size_t>(id)]; }

  NodeId producer_id(TensorId id) const;
  const Node* producer(TensorId id) const;  // null for inputs, scalars and constants
  // The producer of `id` if it is of that kind (and mode), else null.
  template <class OpType>
  const Node* produced_by(TensorId id) const {
    const Node* node = id == kNoTensor ? nullptr : producer(id);
    return node && std::holds_alternative<OpType>(node->op) ? node : nullptr;
  }
  const Node* produced_by(TensorId id, PointwiseMode mode) const;

  const std::vector<NodeId>& consumers(TensorId id) const {
    return consumers_[static_cast<std::size_t>(id)];
  }
  // Number of reads of a tensor; being an output counts as one.
  int uses(TensorId id) const;

  TensorId add_intermediate(std::string name, const Dims& dims, DType dtype,
                            const Dims& strides = {});
  TensorId add_constant(std::string name, double value, DType dtype = i32, int rank = 1);
  // The constant of that value, dtype and rank; a new one named `name` if the graph has none.
  TensorId constant(const std::string& name, double value, DType dtype, int rank);
  NodeId add(Node node);
  // The same for a node that repeats another one: its outputs are complete, nothing is inferred.
  NodeId add_repeated(Node node);
  void set_input(NodeId id, int slot, TensorId tensor);
  void remove(NodeId id);
  // Redirects every reader of `from` to `to`.
  void replace_uses(TensorId from, TensorId to);

  // Makes the producer of `from` compute `to` instead, and its readers read `to`.
  void move_result(TensorId from, TensorId to);

  // Erases removed nodes and sorts the rest topologically.
  void finish();
  // Puts the nodes into this order, of all ids. For graphs with views, whose dependencies are not
  // in the graph.
  void reorder(const std::vector<NodeId>& order);

 private:
  void replace_nodes(std::vector<Node> nodes);
  void index();
  void index_tensors();
  void index_added(NodeId id);
  TensorId add_tensor(Tensor tensor);  // makes its name and uid unique
  Graph& graph_;
  GraphData& data_;
  std::vector<char> removed_;
  std::vector<std::vector<NodeId>> consumers_;
  // Filled when the first tensor is added.
  std::unordered_set<std::string> names_;
  std::map<std::tuple<DType, std::uint64_t, int>, TensorId> constants_;
  std::int64_t highest_uid_ = 0;
};

}  // namespace ashlar
