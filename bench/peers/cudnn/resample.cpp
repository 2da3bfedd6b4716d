// Pooling and interpolation.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

std::vector<Fraction> fractions(const Dims& values, const Dims& window, bool default_to_window) {
  std::vector<Fraction> result;
  for (int axis = 0; axis < window.rank(); ++axis)
    result.push_back({!values.empty() ? values[axis] : default_to_window ? window[axis] : 0, 1});
  return result;
}

int mode_number(ResampleMode mode) {
  switch (mode) {
    case ResampleMode::nearest: return 0;
    case ResampleMode::bilinear: return 1;
    case ResampleMode::avgpool_include_padding: return 2;
    case ResampleMode::maxpool: return 3;
    case ResampleMode::avgpool_exclude_padding: return 4;
  }
  return 0;
}

int padding_number(const ResampleAttributes& op) {
  if (op.mode != ResampleMode::maxpool) return 0;
  switch (op.padding_mode) {
    case PaddingMode::zero: return 0;
    case PaddingMode::neg_inf: return 1;
    case PaddingMode::edge: return 2;
  }
  return 0;
}

bool channels_vary_fastest(const Tensor& tensor) { return tensor.strides[1] == 1; }

const Descriptor& resample(OperationGraph& graph, const ResampleAttributes& op) {
  if (op.window.empty()) throw Refused("interpolation to a size is not translated");
  Descriptor& form = graph.make(DescriptorType::resample);
  form.set(Attribute::resample_mode, ValueType::resample_mode, mode_number(op.mode));
  form.set(Attribute::resample_compute_type, DataType::f32);
  form.set(Attribute::resample_spatial_dims, std::int64_t{op.window.rank()});
  form.set(Attribute::resample_padding_mode, ValueType::padding_mode, padding_number(op));
  form.set(Attribute::resample_nan_propagation, ValueType::nan_propagation, 0);
  const auto set = [&](Attribute name, const Dims& values, bool default_to_window) {
    form.set(name, std::span<const Fraction>(fractions(values, op.window, default_to_window)));
  };
  set(Attribute::resample_window, op.window, true);
  set(Attribute::resample_strides, op.stride, true);
  set(Attribute::resample_pre_paddings, op.padding, false);
  set(Attribute::resample_post_paddings, op.post_padding.value_or(op.padding), false);
  form.finalize();
  return form;
}

}  // namespace

void translate(const ResampleForward& op, const Node& node, OperationGraph& graph) {
  const Descriptor& form = resample(graph, op);
  Descriptor& operation = graph.operation(DescriptorType::operation_resample_forward);
  operation.set(Attribute::resample_forward_resample, form);
  operation.set(Attribute::resample_forward_x, graph.tensor(node.inputs[ResampleForward::x]));
  operation.set(Attribute::resample_forward_y, graph.tensor(node.outputs[ResampleForward::y]));
  if (node.outputs.size() > 1 && node.outputs[ResampleForward::index] != kNoTensor)
    operation.set(Attribute::resample_forward_index,
                  graph.tensor(node.outputs[ResampleForward::index]));
}

void translate(const ResampleBackward& op, const Node& node, OperationGraph& graph) {
  // What positions mean is the library's own affair: others may lead its kernel outside of dx.
  if (op.mode == ResampleMode::maxpool)
    throw Refused("its backward maximum wants the index that its own forward pass left");
  // Its kernels for planes read x and y whatever the mode, without asking for their addresses.
  if (!channels_vary_fastest(graph.stretch().graph.tensor(node.inputs[ResampleBackward::dy])))
    throw Refused("its backward pass over planes reads x and y, which the graph does not have");
  const Descriptor& form = resample(graph, op);
  Descriptor& operation = graph.operation(DescriptorType::operation_resample_backward);
  operation.set(Attribute::resample_backward_resample, form);
  operation.set(Attribute::resample_backward_dy, graph.tensor(node.inputs[ResampleBackward::dy]));
  operation.set(Attribute::resample_backward_dx, graph.tensor(node.outputs[ResampleBackward::dx]));
}

}  // namespace ashlar::bench::cudnn
