// Convolutions as backend operations; groups follow from the channels of x and w.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

std::vector<std::int64_t> filled(const Dims& values, std::int64_t axes, std::int64_t otherwise) {
  if (values.empty()) return std::vector(static_cast<std::size_t>(axes), otherwise);
  return {values.begin(), values.end()};
}

const Descriptor& convolution(OperationGraph& graph, const ConvAttributes& op, const Node& node) {
  const Tensor& x = graph.subgraph().graph.tensor(node.inputs[0]);
  const std::int64_t axes = x.dims.rank() - 2;
  if (axes < 1) throw Refused("the convolution has no spatial dims");
  Descriptor& form = graph.make(DescriptorType::convolution);
  const auto set = [&](Attribute name, const Dims& values, std::int64_t otherwise) {
    form.set(name, std::span<const std::int64_t>(filled(values, axes, otherwise)));
  };
  form.set(Attribute::convolution_spatial_dims, axes);
  form.set(Attribute::convolution_compute_type, data_type(node.compute));
  form.set(Attribute::convolution_mode, ValueType::convolution_mode,
           op.mode == ConvMode::convolution ? 0 : 1);
  set(Attribute::convolution_pre_paddings, op.padding, 0);
  set(Attribute::convolution_post_paddings, op.post_padding.value_or(op.padding), 0);
  set(Attribute::convolution_strides, op.stride, 1);
  set(Attribute::convolution_dilations, op.dilation, 1);
  form.finalize();
  return form;
}

void refuse_accumulation(const ConvAttributes& op, const Node& node) {
  if (op.beta != 0 || (node.inputs.size() > 2 && node.inputs[2] != kNoTensor))
    throw Refused("a convolution that accumulates into its result is not translated");
}

}  // namespace

void translate(const ConvForward& op, const Node& node, OperationGraph& graph) {
  refuse_accumulation(op, node);
  const Descriptor& form = convolution(graph, op, node);
  Descriptor& operation = graph.operation(DescriptorType::operation_convolution_forward);
  operation.set(Attribute::convolution_forward_alpha, static_cast<float>(op.alpha));
  operation.set(Attribute::convolution_forward_beta, 0.0F);
  operation.set(Attribute::convolution_forward_convolution, form);
  operation.set(Attribute::convolution_forward_x, graph.tensor(node.inputs[ConvForward::x]));
  operation.set(Attribute::convolution_forward_w, graph.tensor(node.inputs[ConvForward::w]));
  operation.set(Attribute::convolution_forward_y, graph.tensor(node.outputs[ConvForward::y]));
}

void translate(const ConvBackwardData& op, const Node& node, OperationGraph& graph) {
  refuse_accumulation(op, node);
  const Descriptor& form = convolution(graph, op, node);
  Descriptor& operation = graph.operation(DescriptorType::operation_convolution_backward_data);
  operation.set(Attribute::convolution_backward_data_alpha, static_cast<float>(op.alpha));
  operation.set(Attribute::convolution_backward_data_beta, 0.0F);
  operation.set(Attribute::convolution_backward_data_convolution, form);
  operation.set(Attribute::convolution_backward_data_dy,
                graph.tensor(node.inputs[ConvBackwardData::dy]));
  operation.set(Attribute::convolution_backward_data_w,
                graph.tensor(node.inputs[ConvBackwardData::w]));
  operation.set(Attribute::convolution_backward_data_dx,
                graph.tensor(node.outputs[ConvBackwardData::dx]));
}

void translate(const ConvBackwardFilter& op, const Node& node, OperationGraph& graph) {
  refuse_accumulation(op, node);
  const Descriptor& form = convolution(graph, op, node);
  Descriptor& operation = graph.operation(DescriptorType::operation_convolution_backward_filter);
  operation.set(Attribute::convolution_backward_filter_alpha, static_cast<float>(op.alpha));
  operation.set(Attribute::convolution_backward_filter_beta, 0.0F);
  operation.set(Attribute::convolution_backward_filter_convolution, form);
  operation.set(Attribute::convolution_backward_filter_x,
                graph.tensor(node.inputs[ConvBackwardFilter::x]));
  operation.set(Attribute::convolution_backward_filter_dy,
                graph.tensor(node.inputs[ConvBackwardFilter::dy]));
  operation.set(Attribute::convolution_backward_filter_dw,
                graph.tensor(node.outputs[ConvBackwardFilter::dw]));
}

}  // namespace ashlar::bench::cudnn
