// A subgraph as an operation graph of cuDNN's backend API.
#pragma once

#include <ashlar/graph.hpp>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "descriptor.hpp"

namespace ashlar::bench::cudnn {

// Nodes first <= i < last of a graph: the candidate for one library call.
struct Subgraph {
  const Graph& graph;
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
  const Node& node(std::size_t i) const { return graph.nodes()[first + i]; }
  // Written and read inside the subgraph only: a virtual tensor.
  bool is_internal(TensorId tensor) const;
};

// Dims and strides as the library needs them. A 1-D or 2-D tensor becomes [N, C, 1, 1], as in the
// library's norms.
struct Form {
  std::vector<std::int64_t> dims, strides;
};
Form form_of(const Tensor& tensor);
// In a graph with a matmul: at least rank 3, [batch, rows, columns].
Form matrix_form_of(const Tensor& tensor);

// Throws Refused for a dtype that is not translated.
DataType data_type(DType dtype);

class OperationGraph {
 public:
  OperationGraph(const Library& library, const Subgraph& subgraph);

  const Subgraph& subgraph() const { return subgraph_; }
  // The descriptor of a tensor of the graph, created on first use.
  const Descriptor& tensor(TensorId id);
  // A virtual tensor, for operations composed of several.
  const Descriptor& temporary(const Form& form, DataType type = DataType::f32);
  // A scalar by value.
  const Descriptor& number(double value, DataType type = DataType::f32, std::size_t rank = 4);
  // Another descriptor, owned by this graph.
  Descriptor& make(DescriptorType type);
  // Appends an operation; finish() finalizes all, in order.
  Descriptor& operation(DescriptorType type);

  // The finalized operation graph. Call once.
  const Descriptor& finish();

  // The variant pack: tensors by unique id, and scalars.
  const std::map<TensorId, std::int64_t>& bound() const { return bound_; }
  const std::map<std::int64_t, const void*>& numbers() const { return numbers_; }

 private:
  Form form_here(const Tensor& tensor) const;
  const Descriptor& describe(std::int64_t uid, DataType type, const Form& form, bool is_virtual,
                             bool by_value);

  const Library& library_;
  const Subgraph subgraph_;
  const bool has_matmul_;
  std::deque<Descriptor> owned_;
  std::vector<Descriptor*> operations_;
  std::map<TensorId, const Descriptor*> tensors_;
  std::map<TensorId, std::int64_t> bound_;
  std::map<std::int64_t, const void*> numbers_;
  std::deque<double> values_;  // storage of the scalars, each in its own type
  std::int64_t next_uid_;
};

// Adds the operations of every node. Throws Refused for a node without backend operations.
void translate(OperationGraph& graph);

// --- one per operation
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

// --- building blocks of composed operations
enum class PointwiseNumber : int { add = 0, mul = 1, div = 6, sub = 9, exp = 13, log = 15 };
void add_pointwise(OperationGraph& graph, PointwiseNumber mode, const Descriptor& x,
                   const Descriptor* b, const Descriptor& y);
enum class ReductionNumber : int { add = 0, max = 3 };
void add_reduction(OperationGraph& graph, ReductionNumber mode, const Descriptor& x,
                   const Descriptor& y);

}  // namespace ashlar::bench::cudnn
