// What the translations of single operations share.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

#include "onednn_program.hpp"

namespace ashlar::bench {

// Who chooses the layouts that oneDNN works on.
enum class Formats { given, own_filter, own };

// One of the ways to try.
struct Choice {
  Formats formats = Formats::given;
  int variant = 0;  // counts an operation's algorithms; what one does not have it refuses
};

// A node in front, and the pointwise nodes that follow it in a row.
struct Translation {
  const Graph& graph;
  const Node& node;  // the first
  const Choice& choice;
  Program& program;

  [[noreturn]] static void refuse(const std::string& what);
  // For operations with one algorithm and layouts that follow from their inputs.
  void require_single() const;
  void require_variants(int count) const;  // at most so many
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
  // Without the axes of extent 1 that statistics and scales carry here.
  dnnl::memory read_flat(int slot) const;
  dnnl::memory write_flat(int slot) const;  // scratch where nobody wants it

  // The layout to ask for.
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

// What the nodes behind the first become: a bias, and post-ops with their operands.
struct Epilogue {
  TensorId bias = kNoTensor;  // per channel, added first
  dnnl::primitive_attr attributes;
  struct Extra {
    int argument;
    TensorId tensor;
  };
  std::vector<Extra> extras;
  TensorId addend = kNoTensor;  // what the result is added to, in place
};
// `channel_axis` is the axis of the result along which a bias varies. With `in_place` a tensor that
// is added lies where the result goes; refuses when there is none.
Epilogue epilogue_of(const Translation& t, int channel_axis, bool in_place = false);
// The operands of the post-ops, for Program::add.
std::vector<Program::Operand> extra_operands(const Translation& t, const Epilogue& epilogue,
                                             const dnnl::primitive_desc_base& chosen);

// oneDNN's name for a pointwise mode of one operand; refuses those it has not.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0;
};
Eltwise eltwise_of(const Pointwise& op);

// --- by families. Each refuses what oneDNN has not.
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
