// NodeContext: the node that an inference function of src/graph/ops fills in and checks.
#pragma once

#include <fmt/format.h>

#include "graph/graph_data.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

// The node being inferred, with copies of its outputs that are committed only on success.
class NodeContext {
 public:
  NodeContext(const GraphData& graph, Node& node);

  template <class OpType>
  OpType& op() {
    return std::get<OpType>(node_.op);
  }
  Node& node() { return node_; }
  const OpTraits& traits() const { return traits_; }

  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int slot) const;
  const Tensor& input(int slot) const;
  std::string input_name(int slot) const;  // "w 'filter'": the operand and its tensor, for messages
  bool has_output(int slot) const;
  Tensor& output(int slot);
  std::vector<Tensor>& outputs() { return outputs_; }

  // "conv_forward 'c1': padding: got [1], expected 2 values"
  template <class Got, class... Args>
  [[noreturn]] void reject(std::string_view what, const Got& got,
                           fmt::format_string<Args...> expected, Args&&... args) const {
    reject_text(what, describe(got), fmt::format(expected, std::forward<Args>(args)...));
  }

  // --- inference of outputs: fill in when missing, else check
  void infer_dims(int output_slot, const Dims& dims);
  void infer_dtype(int output_slot, DType dtype);
  void infer_strides_like(int output_slot,
                          const Tensor& like);  // its axis order if ranks agree, else row-major

  // --- checks on inputs
  void require_rank(int input_slot, int least, int most) const;
  void require_dims(int input_slot, const Dims& dims) const;
  // Every extent is 1 or that of `dims`.
  void require_broadcastable(int input_slot, const Dims& dims) const;
  void require_floating(int input_slot) const;
  void require_arithmetic(int input_slot) const;  // anything but bool
  void require_integer(int input_slot) const;
  void require_one_element(int input_slot) const;

  // Rejects complex types outside of matmul, and e8m0 outside of block scaling, conversions and
  // data movement.
  void require_usable(const std::string& what, DType dtype) const;

  // Normalises an attribute with one value per axis: empty becomes `filler` everywhere; a wrong
  // length or a value below `least` is rejected.
  void normalise_per_axis(std::string_view name, Dims& values, int count, std::int64_t filler,
                          std::int64_t least) const;
  // A negative axis counts from the end.
  void normalise_axis(std::string_view name, std::int64_t& axis, int rank) const;

 private:
  static std::string describe(const Dims& dims) { return to_string(dims); }
  static std::string describe(DType dtype) { return std::string(to_string(dtype)); }
  template <class T>
  static std::string describe(const T& value) {
    return fmt::format("{}", value);
  }
  [[noreturn]] void reject_text(std::string_view what, const std::string& got,
                                const std::string& expected) const;

  const GraphData& graph_;
  Node& node_;
  const OpTraits& traits_;
  std::vector<Tensor> outputs_;
};

}  // namespace ashlar
