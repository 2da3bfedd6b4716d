// Replacing an operation that is a composition by the smaller operations it is made of, so that
// their engines run it: the inverse of raising.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/graph_editor.hpp"

namespace ashlar {

// The node that is being replaced, and what stands for it. New nodes compute in its compute type
// (f32 at least), which is the dtype of what passes between them.
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

  // Takes the node out of the graph. Comes first: its outputs get new producers.
  void begin() { editor_.remove(id_); }

  // Results are named after the node and `role`. What they leave open is inferred.
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
  // factor * x where `predicate` holds, else 0.
  TensorId select_or_zero(TensorId predicate, TensorId x, double factor, const std::string& role);
  TensorId matmul(TensorId a, TensorId b, const std::string& role);
  TensorId constant(double value, int rank, const std::string& role);
  // Views, of the operand's dtype: the operand itself where nothing changes.
  TensorId reshape(TensorId x, Dims dims);
  TensorId transpose(TensorId x, const Dims& permutation);
  TensorId slice(TensorId x, const Dims& start, const Dims& limit);
  // x times `count`, one after the other along `axis`.
  TensorId repeat(TensorId x, std::int64_t axis, std::int64_t count, const std::string& role);
  // `x` becomes an output of the node: reshaped, converted.
  void store(TensorId x, int output_slot);
  // An operation with one result, which is an output of the node as it is.
  void make(Op op, std::vector<TensorId> inputs, int output_slot);

 private:
  std::string name_of(const std::string& role) const;
  // What a view of x is called.
  std::string view_role(TensorId x, const char* change) const;

  GraphEditor& editor_;
  NodeId id_;
  Node node_;
  std::string prefix_;  // of every new name
  DType dtype_;
  int count_ = 0;
};

// One per operation that can be expanded. False: this node has to stay whole.
bool expand(const MultiHeadAttentionForward& op, Expansion& expansion);
bool expand(const MultiHeadAttentionBackwardData& op, Expansion& expansion);
bool expand(const MultiHeadAttentionBackwardWeights& op, Expansion& expansion);
bool expand(const MoeGroupedMatmulBackward& op, Expansion& expansion);
template <class Other>
bool expand(const Other&, Expansion&) {
  return false;
}

}  // namespace ashlar
