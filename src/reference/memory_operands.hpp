// The operands of a node as tensors in memory: the inputs of evaluate_node to the loop nests.
#pragma once

#include "reference/addressing.hpp"
#include "reference/reference.hpp"

namespace ashlar::reference {

class MemoryView {
 public:
  using Scalar = double;

  MemoryView(const Tensor& tensor, const void* data, RaggedRows rows)
      : tensor_(&tensor),
        shape_(tensor),
        data_(data),
        address_(shape_.dims, shape_.strides, rows) {}

  const Dims& dims() const { return shape_.dims; }
  DType dtype() const { return shape_.dtype; }
  bool complex() const { return is_complex(tensor_->dtype); }  // the last axis holds the parts

  // Consecutive elements along an axis.
  class Line {
   public:
    Line(const MemoryView& view, const Index& index, int axis)
        : view_(view), index_(index), axis_(axis), start_(index[axis]) {}
    double operator[](std::int64_t i) {
      index_[axis_] = start_ + i;
      return view_.load(index_);
    }

   private:
    const MemoryView& view_;
    Index index_;
    int axis_;
    std::int64_t start_;
  };

  double load(const Index& index) const {
    if (tensor_->kind == TensorKind::constant) return round_to(tensor_->dtype, tensor_->value);
    const std::int64_t element = address_(index);
    return element == Addressing::kOutside ? 0.0 : load_element(shape_.dtype, data_, element);
  }
  Line line(const Index& index, int axis) const { return {*this, index, axis}; }
  void store(const Index& index, double value) const {
    const std::int64_t element = address_(index);
    if (element != Addressing::kOutside)
      store_element(shape_.dtype, const_cast<void*>(data_), element, value);
  }

 private:
  const Tensor* tensor_;
  RealShape shape_;
  const void* data_;  // of an output: given as void*
  Addressing address_;
};

class MemoryOperands {
 public:
  using Scalar = double;
  using View = MemoryView;

  MemoryOperands(const Graph& graph, const Node& node, NodeMemory memory)
      : graph_(graph), node_(node), memory_(memory) {}

  DType compute() const { return node_.compute; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return i < input_count() && node_.inputs[at(i)] != kNoTensor; }
  bool has_output(int i) const {
    return at(i) < node_.outputs.size() && memory_.outputs[at(i)] != nullptr;
  }
  MemoryView input(int i) const {
    const Tensor& tensor = graph_.tensor(node_.inputs[at(i)]);
    return {tensor, memory_.inputs[at(i)], rows(tensor, memory_.input_offsets, i)};
  }
  MemoryView output(int i) const {
    const Tensor& tensor = graph_.tensor(node_.outputs[at(i)]);
    return {tensor, memory_.outputs[at(i)], rows(tensor, memory_.output_offsets, i)};
  }
  // A single integer at full 64-bit precision.
  std::int64_t integer(int i) const {
    return load_integer(graph_.tensor(node_.inputs[at(i)]), memory_.inputs[at(i)]);
  }

  void* scratch() const { return memory_.scratch; }

  static std::int64_t load_integer(const Tensor& tensor, const void* data) {
    if (tensor.kind == TensorKind::constant) return static_cast<std::int64_t>(tensor.value);
    if (tensor.dtype == DType::i64) return *static_cast<const std::int64_t*>(data);
    return static_cast<std::int64_t>(load_element(tensor.dtype, data, 0));
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  RaggedRows rows(const Tensor& tensor, std::span<const void* const> offsets, int i) const {
    return RaggedRows::of(graph_, tensor, at(i) < offsets.size() ? offsets[at(i)] : nullptr);
  }

  const Graph& graph_;
  const Node& node_;
  NodeMemory memory_;
};

}  // namespace ashlar::reference
