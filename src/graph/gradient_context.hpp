// GradientContext: the node whose rule (OpTraits::gradient) adds the gradients of its inputs.
#pragma once

#include <ashlar/graph.hpp>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph_data.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

// What gradients() knows while it walks the nodes from the last to the first.
struct GradientState {
  std::vector<std::vector<Value>> terms;  // by tensor: gradients that its readers have added
  std::vector<bool> active;               // by tensor: depends on a value of `wrt`
  std::vector<bool> is_result;            // by tensor: a value of `wrt`
  std::optional<DType> result_dtype;
};

class GradientContext {
 public:
  GradientContext(Graph& graph, NodeId id, GradientState& state);

  Graph& graph() const { return graph_; }
  template <class OpType>
  const OpType& op() const {
    return std::get<OpType>(node_.op);
  }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  Value input(int slot) const { return value_at(node_.inputs, slot); }  // empty: absent
  Value output(int slot) const { return value_at(node_.outputs, slot); }
  // Makes the node compute an optional output.
  Value require_output(int slot);
  // Whether the gradient of an input has to be computed.
  bool wants(int slot) const;
  // The gradient of an output; empty if nothing depends on it.
  Value dy(int slot = 0) const;
  // Refuses gradients of outputs other than `slot`: the rule ignores them.
  void only_output(int slot) const;
  // dtype, dims and axis order of the gradient of an input.
  OutputSpec spec(int slot) const;
  // f64 for a node that computes in f64, else f32: the dtype of steps between.
  DType wide() const { return node_.compute == f64 ? f64 : f32; }

  // Adds a gradient of an input: summed over the axes along which the operand was broadcast, and
  // converted to its dtype.
  void add(int slot, Value gradient);

  // --- building blocks
  Value pointwise(PointwiseMode mode, std::initializer_list<Value> operands,
                  Pointwise attributes = {}) const;
  Value multiply(Value a, Value b, double factor = 1.0) const;
  Value scale(Value x, double factor) const;
  Value constant(double value, int rank) const;
  // predicate ? factor * x : 0
  Value select_or_zero(Value predicate, Value x, double factor = 1.0) const;
  // The sign of x times dy, 0 where x is 0.
  Value multiply_by_sign(Value gradient, Value x) const;
  // `x` repeated to the dims of `like`.
  Value expand(Value x, Value like) const;

  // The operands of this node that `backward` has too, by name.
  std::vector<AnyOperand> shared_operands(const Op& backward) const;

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  Value value_at(const std::vector<TensorId>& ids, int slot) const;

  Graph& graph_;
  NodeId id_;
  Node node_;  // a copy: the graph grows
  GradientState& state_;
};

}  // namespace ashlar
