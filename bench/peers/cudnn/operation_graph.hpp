// A stretch of a graph's nodes as an operation graph of the backend.
#pragma once

#include <ashlar/graph.hpp>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "descriptor.hpp"

namespace ashlar::bench::cudnn {

// Nodes first <= i < last of a graph: what one call of the library is to do.
struct Stretch {
  const Graph& graph;
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
  const Node& node(std::size_t i) const { return graph.nodes()[first + i]; }
  // Made here and needed nowhere else: never in memory.
  bool is_inner(TensorId tensor) const;
};

// Extents and strides as the library wants them: at least four axes. A matrix of rows becomes N
// rows of C channels, as its own normalisations have it.
struct Form {
  std::vector<std::int64_t> dims, strides;
};
Form form_of(const Tensor& tensor);
// In a graph of matrix products: one of them.
Form matrix_form_of(const Tensor& tensor);

// Throws Refused for a dtype it does not have.
DataType data_type(DType dtype);

class OperationGraph {
 public:
  OperationGraph(const Library& library, const Stretch& stretch);

  const Stretch& stretch() const { return stretch_; }
  // The descriptor of a tensor of the graph; made when first asked for.
  const Descriptor& tensor(TensorId id);
  // As another tensor, in f32, inside only: for operations made of several.
  const Descriptor& temporary(const Form& form, DataType type = DataType::f32);
  // One number, read from the host.
  const Descriptor& number(double value, DataType type = DataType::f32, std::size_t rank = 4);
  // A further descriptor that lives as long as this graph.
  Descriptor& make(DescriptorType type);
  // An operation: finalized, in order, when all are there.
  Descriptor& operation(DescriptorType type);

  // The whole, ready for the heuristics. Called once.
  const Descriptor& finish();

  // What a run must be given: tensors by unique id, and the numbers.
  const std::map<TensorId, std::int64_t>& bound() const { return bound_; }
  const std::map<std::int64_t, const void*>& numbers() const { return numbers_; }

 private:
  Form form_here(const Tensor& tensor) const;
  const Descriptor& describe(std::int64_t uid, DataType type, const Form& form, bool is_virtual,
                             bool by_value);

  const Library& library_;
  const Stretch stretch_;
  const bool multiplies_matrices_;
  std::deque<Descriptor> owned_;
  std::vector<Descriptor*> operations_;
  std::map<TensorId, const Descriptor*> tensors_;
  std::map<TensorId, std::int64_t> bound_;
  std::map<std::int64_t, const void*> numbers_;
  std::deque<double> values_;  // storage of the numbers, in their own type
  std::int64_t next_uid_;
};

// Adds the operations of every node. Throws Refused for what the backend has no operation for.
void translate(OperationGraph& graph);

// --- one per family, for the above
void translate(const Pointwise& op, const Node& node, OperationGraph& graph);
void translate(const Reduction& op, const Node& node, OperationGraph& graph);
void translate(const Matmul& op, const Node& node, OperationGraph& graph);
void translate(const ConvForward& op, const Node& node, OperationGraph& graph);
void translate(const ConvBackwardData& op, const Node& node, OperationGraph& graph);
void translate(const ConvBackwardFilter& op, const Node& node, OperationGraph& graph);
void translate(const NormForward& op, const Node& node, OperationGraph& graph);
void translate(const NormBackward& op, const Node& node, OperationGraph& graph);
void translate(const GenStats& op, const Node& node, OperationGraph& graph);
void translate(const ResampleForward& op, const Node& node, OperationGraph& graph);
void translate(const ResampleBackward& op, const Node& node, OperationGraph& graph);
void translate(const SoftmaxForward& op, const Node& node, OperationGraph& graph);
void translate(const SoftmaxBackward& op, const Node& node, OperationGraph& graph);
void translate(const Rng& op, const Node& node, OperationGraph& graph);
void translate(const DropoutForward& op, const Node& node, OperationGraph& graph);
void translate(const Concat& op, const Node& node, OperationGraph& graph);
void translate(const Reshape& op, const Node& node, OperationGraph& graph);

// --- a pointwise operation by its mode, for operations made of several
enum class PointwiseNumber : int { add = 0, mul = 1, div = 6, sub = 9, exp = 13, log = 15 };
void add_pointwise(OperationGraph& graph, PointwiseNumber mode, const Descriptor& x,
                   const Descriptor* b, const Descriptor& y);
enum class ReductionNumber : int { add = 0, max = 3 };
void add_reduction(OperationGraph& graph, ReductionNumber mode, const Descriptor& x,
                   const Descriptor& y);

}  // namespace ashlar::bench::cudnn
