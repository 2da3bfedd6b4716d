// Expansion of composite operations into primitive ones, so that the engines of those run them: the
// inverse of raising.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/graph_editor.hpp"

namespace ashlar {

// The node being replaced and its replacement. New nodes use the node's compute type (at least
// f32), which is also the dtype of the intermediates between them.
class Expansion {
 public:
  Expansion(GraphEditor& editor, NodeId id);

  const Node& node() const { return node_; }
  DType dtype() const { return dtype_; }
  int node_count() const { return count_; }
  TensorId input(int slot) const { return node_.inputs[static_cast<std::size_t>(slot)]; }
  TensorId output(int slot) const { return node_.outputs[static_cast<std::size_t>(slot)]; }
  const Tensor& tensor(TensorId id) const { return editor_.tensor(id); }
  const Dims& dims(TensorId id) const { return tensor(id).dims; }

  // Removes the node from the graph. Call it first: its outputs get new producers.
  void begin() { editor_.remove(id_); }

  // Results are named after the node and `role`. Unset properties are inferred.
  struct Result {
    std::string role;
    Dims dims = {}, strides = {};
    std::optional<DType> dtype = {};
  };
  std::vector<TensorId> add(Op op, std::vector<TensorId> inputs, const std::vector<Result>& results,
                            std::optional<DType> compute = {});
  TensorId add(Op op, std::vector<TensorId> inputs, const Result& result,
               std::optional<DType> compute = {}) {
    return add(std::move(op), std::move(inputs), std::vector{result}, compute)[0];
  }

  TensorId pointwise(PointwiseMode mode, std::vector<TensorId> inputs, const Result& result,
                     std::optional<DType> compute = {});
  // factor * x where `predicate` is true, else 0.
  TensorId select_or_zero(TensorId predicate, TensorId x, double factor, const std::string& role);
  TensorId matmul(TensorId a, TensorId b, const std::string& role);
  TensorId constant(double value, int rank, const std::string& role);
  // Views with the operand's dtype; they return the operand itself if nothing changes.
  TensorId reshape(TensorId x, Dims dims);
  TensorId transpose(TensorId x, const Dims& permutation);
  TensorId slice(TensorId x, const Dims& start, const Dims& limit);
  // `count` copies of x, concatenated along `axis`.
  TensorId repeat(TensorId x, std::int64_t axis, std::int64_t count, const std::string& role);
  // Makes `x` an output of the node, reshaped and converted as needed.
  void store(TensorId x, int output_slot);
  // Adds an operation whose only result is an output of the node.
  void make(Op op, std::vector<TensorId> inputs, int output_slot);

 private:
  std::string name_of(const std::string& role) const;
  // The role in the name of a view of x.
  std::string view_role(TensorId x, const char* change) const;

  GraphEditor& editor_;
  NodeId id_;
  Node node_;
  std::string prefix_;  // of every new name
  DType dtype_;
  int count_ = 0;
};

// attention_forward as matmul, softmax, matmul, for devices without an attention engine that takes
// the node. Returns false if this node cannot be expanded.
bool expand_into_matmuls(const AttentionForward& op, Expansion& expansion);

// One overload per operation that is always expanded. Returns false if this node cannot be.
bool expand(const MultiHeadAttentionForward& op, Expansion& expansion);
bool expand(const MultiHeadAttentionBackwardData& op, Expansion& expansion);
bool expand(const MultiHeadAttentionBackwardWeights& op, Expansion& expansion);
bool expand(const MoeGroupedMatmulBackward& op, Expansion& expansion);
template <class Other>
bool expand(const Other&, Expansion&) {
  return false;
}

}  // namespace ashlar
