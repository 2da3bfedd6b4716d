// Norms as backend operations.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

int mode_number(NormMode mode) {
  switch (mode) {
    case NormMode::layer: return 0;
    case NormMode::instance: return 1;
    case NormMode::batch: return 2;
    case NormMode::group: return 3;
    case NormMode::rms: return 4;
    case NormMode::ada_layer: return 5;
  }
  return 0;
}

void refuse_groups(NormMode mode, std::int64_t groups) {
  if (mode == NormMode::group || groups != 1) throw Refused("the backend has no group norm");
}

// Sets an attribute to a tensor of the node, if present.
class Operands {
 public:
  Operands(OperationGraph& graph, Descriptor& operation) : graph_(graph), operation_(operation) {}
  bool set(Attribute name, const std::vector<TensorId>& tensors, int slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (at >= tensors.size() || tensors[at] == kNoTensor) return false;
    operation_.set(name, graph_.tensor(tensors[at]));
    return true;
  }

 private:
  OperationGraph& graph_;
  Descriptor& operation_;
};

}  // namespace

void translate(const NormForward& op, const Node& node, OperationGraph& graph) {
  refuse_groups(op.mode, op.groups);
  Descriptor& operation = graph.operation(DescriptorType::operation_norm_forward);
  Operands operands(graph, operation);
  operation.set(Attribute::norm_forward_mode, ValueType::norm_mode, mode_number(op.mode));
  operation.set(Attribute::norm_forward_phase, ValueType::norm_phase,
                op.phase == NormPhase::training ? 1 : 0);
  operands.set(Attribute::norm_forward_x, node.inputs, NormForward::x);
  operands.set(Attribute::norm_forward_scale, node.inputs, NormForward::scale);
  operands.set(Attribute::norm_forward_bias, node.inputs, NormForward::bias);
  operands.set(Attribute::norm_forward_y, node.outputs, NormForward::y);
  if (!operands.set(Attribute::norm_forward_epsilon, node.inputs, NormForward::epsilon_tensor))
    operation.set(Attribute::norm_forward_epsilon, graph.number(op.epsilon));
  if (op.phase == NormPhase::training) {
    operands.set(Attribute::norm_forward_mean, node.outputs, NormForward::out_mean);
    operands.set(Attribute::norm_forward_inv_variance, node.outputs, NormForward::out_inv_variance);
  } else {
    operands.set(Attribute::norm_forward_mean, node.inputs, NormForward::mean);
    operands.set(Attribute::norm_forward_inv_variance, node.inputs, NormForward::inv_variance);
  }
  const bool running =
      operands.set(Attribute::norm_forward_running_mean, node.inputs, NormForward::running_mean);
  operands.set(Attribute::norm_forward_running_variance, node.inputs, NormForward::running_var);
  operands.set(Attribute::norm_forward_next_running_mean, node.outputs,
               NormForward::next_running_mean);
  operands.set(Attribute::norm_forward_next_running_variance, node.outputs,
               NormForward::next_running_var);
  if (running &&
      !operands.set(Attribute::norm_forward_momentum, node.inputs, NormForward::momentum_tensor))
    operation.set(Attribute::norm_forward_momentum, graph.number(op.momentum));
}

void translate(const NormBackward& op, const Node& node, OperationGraph& graph) {
  refuse_groups(op.mode, op.groups);
  Descriptor& operation = graph.operation(DescriptorType::operation_norm_backward);
  Operands operands(graph, operation);
  operation.set(Attribute::norm_backward_mode, ValueType::norm_mode, mode_number(op.mode));
  operands.set(Attribute::norm_backward_x, node.inputs, NormBackward::x);
  operands.set(Attribute::norm_backward_dy, node.inputs, NormBackward::dy);
  operands.set(Attribute::norm_backward_scale, node.inputs, NormBackward::scale);
  operands.set(Attribute::norm_backward_mean, node.inputs, NormBackward::mean);
  operands.set(Attribute::norm_backward_inv_variance, node.inputs, NormBackward::inv_variance);
  operands.set(Attribute::norm_backward_epsilon, node.inputs, NormBackward::epsilon_tensor);
  operands.set(Attribute::norm_backward_dx, node.outputs, NormBackward::dx);
  operands.set(Attribute::norm_backward_dscale, node.outputs, NormBackward::dscale);
  operands.set(Attribute::norm_backward_dbias, node.outputs, NormBackward::dbias);
}

void translate(const GenStats&, const Node& node, OperationGraph& graph) {
  Descriptor& operation = graph.operation(DescriptorType::operation_genstats);
  operation.set(Attribute::genstats_mode, ValueType::genstats_mode, 0);
  operation.set(Attribute::genstats_math_precision, DataType::f32);
  Operands operands(graph, operation);
  operands.set(Attribute::genstats_x, node.inputs, GenStats::x);
  operands.set(Attribute::genstats_sum, node.outputs, GenStats::sum);
  operands.set(Attribute::genstats_sq_sum, node.outputs, GenStats::sq_sum);
}

}  // namespace ashlar::bench::cudnn
