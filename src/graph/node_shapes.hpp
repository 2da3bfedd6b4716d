// An operation and the extents of its operands, of a node of a graph or of the anchor of a region:
// what FLOP counts and contents depend on.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar {

class NodeShapes {
 public:
  explicit NodeShapes(const Op& op) : op_(op) {}

  template <class OpType>
  const OpType& op() const {
    return std::get<OpType>(op_);
  }
  // No dims: the operand is absent.
  virtual const Dims& input(int slot) const = 0;
  virtual const Dims& output(int slot) const = 0;
  virtual DType input_dtype(int slot) const = 0;
  virtual int input_count() const = 0;

 protected:
  ~NodeShapes() = default;

 private:
  const Op& op_;
};

class GraphNodeShapes final : public NodeShapes {
 public:
  GraphNodeShapes(const Graph& graph, const Node& node)
      : NodeShapes(node.op), graph_(graph), node_(node) {}
  const Dims& input(int slot) const override { return tensor(node_.inputs, slot).dims; }
  const Dims& output(int slot) const override { return tensor(node_.outputs, slot).dims; }
  DType input_dtype(int slot) const override { return tensor(node_.inputs, slot).dtype; }
  int input_count() const override { return static_cast<int>(node_.inputs.size()); }

 private:
  const Tensor& tensor(const std::vector<TensorId>& ids, int slot) const {
    static const Tensor absent;
    const TensorId id =
        std::cmp_less(slot, ids.size()) ? ids[static_cast<std::size_t>(slot)] : kNoTensor;
    return id == kNoTensor ? absent : graph_.tensor(id);
  }

  const Graph& graph_;
  const Node& node_;
};

// The number of elements as a floating-point number: no overflow.
inline double count_of(const Dims& dims) {
  double elements = 1;
  for (const std::int64_t extent : dims) elements *= static_cast<double>(extent);
  return elements;
}

}  // namespace ashlar
