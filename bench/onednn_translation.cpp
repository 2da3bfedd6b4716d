#include "onednn_translation.hpp"

#include <fmt/format.h>

namespace ashlar::bench {

namespace {

Descriptor free_layout(const Descriptor& given) {
  return {given.dims(), given.data_type(), dnnl::memory::format_tag::any};
}

Descriptor flat(const Tensor& tensor) {
  return {{element_count(tensor.dims)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

bool per_channel(const Tensor& tensor, int channel_axis) {
  for (int axis = 0; axis < tensor.dims.rank(); ++axis)
    if (axis != channel_axis && tensor.dims[axis] != 1) return false;
  return true;
}

}  // namespace

void Translation::refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the oneDNN peer does not translate {}", what));
}

void Translation::require_single() const {
  if (choice.formats != Formats::given || choice.variant != 0)
    refuse("a second implementation of this operation");
  require_alone();
}

void Translation::require_variants(int count) const {
  if (choice.variant >= count) refuse("another algorithm for this operation");
}

void Translation::require_alone() const {
  if (graph.nodes().size() != 1) refuse("post-ops of this operation");
}

bool Translation::has_in(int slot) const {
  return static_cast<std::size_t>(slot) < node.inputs.size() && in_id(slot) != kNoTensor;
}

bool Translation::has_out(int slot) const {
  return static_cast<std::size_t>(slot) < node.outputs.size() && out_id(slot) != kNoTensor;
}

const Tensor& Translation::result() const {
  return graph.tensor(graph.nodes().back().outputs.front());
}

dnnl::memory Translation::read(int slot, const Descriptor& as) const {
  return program.bound(in_id(slot), as);
}

dnnl::memory Translation::write(int slot, const Descriptor& as) const {
  return has_out(slot) ? program.bound(out_id(slot), as) : program.scratch(as);
}

dnnl::memory Translation::write_result() const {
  return program.bound(graph.nodes().back().outputs.front(), descriptor_of(result()));
}

dnnl::memory Translation::read_flat(int slot) const { return read(slot, flat(in(slot))); }

dnnl::memory Translation::write_flat(int slot) const { return write(slot, flat(out(slot))); }

Descriptor Translation::activation(const Descriptor& given) const {
  return choice.formats == Formats::own ? free_layout(given) : given;
}

Descriptor Translation::filter(const Descriptor& given) const {
  return choice.formats == Formats::given ? given : free_layout(given);
}

Epilogue epilogue_of(const Translation& t, int channel_axis, bool in_place) {
  Epilogue epilogue;
  dnnl::post_ops post;
  TensorId last = t.node.outputs.front();
  for (std::size_t i = 1; i < t.graph.nodes().size(); ++i) {
    const Node& node = t.graph.nodes()[i];
    const auto* op = std::get_if<Pointwise>(&node.op);
    if (!op || node.inputs.front() != last) t.refuse("this epilogue");
    last = node.outputs.front();
    if (op->mode != PointwiseMode::add) {
      const Eltwise eltwise = eltwise_of(*op);
      post.append_eltwise(1, eltwise.algorithm, eltwise.alpha, 0);
      continue;
    }
    const TensorId other = node.inputs[Pointwise::b];
    const Tensor& tensor = t.graph.tensor(other);
    if (tensor.kind != TensorKind::input) t.refuse("a post-op operand computed by the graph");
    if (i == 1 && per_channel(tensor, channel_axis)) {
      epilogue.bias = other;
      continue;
    }
    if (in_place && epilogue.addend == kNoTensor && tensor.dims == t.result().dims) {
      epilogue.addend = other;
      post.append_sum();
      continue;
    }
    epilogue.extras.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1, other});
    post.append_binary(dnnl::algorithm::binary_add, t.activation(descriptor_of(tensor)));
  }
  if (in_place && epilogue.addend == kNoTensor) t.refuse("an in-place sum without a residual");
  epilogue.attributes.set_post_ops(post);
  return epilogue;
}

std::vector<Program::Operand> extra_operands(const Translation& t, const Epilogue& epilogue,
                                             const dnnl::primitive_desc_base& chosen) {
  std::vector<Program::Operand> operands;
  for (const auto& [argument, tensor] : epilogue.extras) {
    const Descriptor given = descriptor_of(t.graph.tensor(tensor));
    const Descriptor wanted = t.choice.formats == Formats::own
                                  ? chosen.query_md(dnnl::query::exec_arg_md, argument)
                                  : given;
    operands.push_back({argument, t.program.bound(tensor, given), wanted});
  }
  return operands;
}

Eltwise eltwise_of(const Pointwise& op) {
  using dnnl::algorithm;
  switch (op.mode) {
    case PointwiseMode::relu_fwd: return {algorithm::eltwise_relu};
    case PointwiseMode::gelu_fwd: return {algorithm::eltwise_gelu_erf};
    case PointwiseMode::gelu_approx_tanh_fwd: return {algorithm::eltwise_gelu_tanh};
    case PointwiseMode::tanh_fwd: return {algorithm::eltwise_tanh};
    case PointwiseMode::sigmoid_fwd: return {algorithm::eltwise_logistic};
    case PointwiseMode::swish_fwd: return {algorithm::eltwise_swish, 1};
    case PointwiseMode::exp: return {algorithm::eltwise_exp};
    case PointwiseMode::log: return {algorithm::eltwise_log};
    case PointwiseMode::sqrt: return {algorithm::eltwise_sqrt};
    case PointwiseMode::abs: return {algorithm::eltwise_abs};
    default: Translation::refuse("this pointwise mode");
  }
}

}  // namespace ashlar::bench
