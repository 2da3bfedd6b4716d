// Translation of graphs into oneDNN programs: an operation and its pointwise epilogue.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

#include "onednn_program.hpp"

namespace ashlar::bench {

// Memory formats: the user's, oneDNN's choice for the filter, oneDNN's choice for all tensors.
enum class Formats { given, own_filter, own };

// One implementation to try.
struct Choice {
  Formats formats = Formats::given;
  int variant = 0;  // index of the operation's algorithm; refused if out of range
};

// The first node and the chain of pointwise nodes behind it.
struct Translation {
  const Graph& graph;
  const Node& node;  // the first
  const Choice& choice;
  Program& program;

  [[noreturn]] static void refuse(const std::string& what);
  // For operations with one algorithm whose layouts follow from their inputs.
  void require_single() const;
  void require_variants(int count) const;  // choice.variant < count
  void require_alone() const;              // nothing follows the first node

  TensorId in_id(int slot) const { return node.inputs[static_cast<std::size_t>(slot)]; }
  TensorId out_id(int slot) const { return node.outputs[static_cast<std::size_t>(slot)]; }
  bool has_in(int slot) const;
  bool has_out(int slot) const;
  const Tensor& in(int slot) const { return graph.tensor(in_id(slot)); }
  const Tensor& out(int slot) const { return graph.tensor(out_id(slot)); }
  const Tensor& result() const;  // of the last node

  dnnl::memory read(int slot) const { return read(slot, descriptor_of(in(slot))); }
  dnnl::memory read(int slot, const Descriptor& as) const;
  dnnl::memory write(int slot) const { return write(slot, descriptor_of(out(slot))); }
  dnnl::memory write(int slot, const Descriptor& as) const;
  dnnl::memory write_result() const;
  // Statistics and scales without their axes of extent 1.
  dnnl::memory read_flat(int slot) const;
  dnnl::memory write_flat(int slot) const;  // scratch if the graph does not read it

  // The layout to request.
  Descriptor activation(const Descriptor& given) const;
  Descriptor filter(const Descriptor& given) const;

  static Program::Operand same(int argument, const dnnl::memory& memory) {
    return {argument, memory, memory.get_desc()};
  }
  Program::Operand input(int argument, int slot, const Descriptor& as,
                         const Descriptor& wanted) const {
    return {argument, read(slot, as), wanted, program.constant(in_id(slot))};
  }
};

// The nodes behind the first: a bias, and post-ops with their operands.
struct Epilogue {
  TensorId bias = kNoTensor;  // per channel, added first
  dnnl::primitive_attr attributes;
  struct Extra {
    int argument;
    TensorId tensor;
  };
  std::vector<Extra> extras;
  TensorId addend = kNoTensor;  // accumulated in place (the sum post-op)
};
// `channel_axis` is the axis of the result along which a bias varies. With `in_place` the residual
// shares the result's memory (the sum post-op); refuses if there is none.
Epilogue epilogue_of(const Translation& t, int channel_axis, bool in_place = false);
// The operands of the post-ops, for Program::add.
std::vector<Program::Operand> extra_operands(const Translation& t, const Epilogue& epilogue,
                                             const dnnl::primitive_desc_base& chosen);

// oneDNN's algorithm for a unary pointwise mode; refuses modes it lacks.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0;
};
Eltwise eltwise_of(const Pointwise& op);

// --- one per operation. Each refuses what oneDNN lacks.
void translate(const ConvForward& op, const Translation& t);
void translate(const ConvBackwardData& op, const Translation& t);
void translate(const ConvBackwardFilter& op, const Translation& t);
void translate(const Matmul& op, const Translation& t);
void translate(const NormForward& op, const Translation& t);
void translate(const NormBackward& op, const Translation& t);
void translate(const SoftmaxForward& op, const Translation& t);
void translate(const SoftmaxBackward& op, const Translation& t);
void translate(const Pointwise& op, const Translation& t);
void translate(const Reduction& op, const Translation& t);
void translate(const ResampleForward& op, const Translation& t);
void translate(const Transpose& op, const Translation& t);
void translate(const Concat& op, const Translation& t);
void translate(const Slice& op, const Translation& t);
void translate(const AttentionForward& op, const Translation& t);
void translate(const AttentionBackward& op, const Translation& t);
void translate(const RnnForward& op, const Translation& t);
template <class Op>
void translate(const Op&, const Translation&) {
  Translation::refuse("this operation");
}

}  // namespace ashlar::bench
