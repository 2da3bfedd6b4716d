// Pointwise operations, reductions and matmuls as backend operations.
#include <array>

#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

// cudnnPointwiseMode_t by PointwiseMode; cuDNN has none of the modes that follow.
constexpr std::array kModes = {0,   1,   2,   3,   5,   6,   7,   8,   9,   23,  // add ... atan2
                               4,   10,  11,  12,  13,  14,  15,  16,  17,  18,  // sqrt ... sin
                               19,  20,  21,  22,  // tan, erf, identity, reciprocal
                               100, 101, 102, 103, 104, 105, 106, 107,       // activations
                               200, 201, 202, 203, 204, 205, 206, 207,       // their gradients
                               300, 301, 302, 303, 304, 305, 400, 401, 402,  // comparisons, logic
                               501, 601};  // gen_index, binary_select
static_assert(kModes.size() == static_cast<std::size_t>(PointwiseMode::binary_select) + 1);

constexpr std::array<int, 9> kReductions = {0, 1, 2, 3, 4, 5, 6, 7, 8};  // by ReductionMode

bool is_gradient(PointwiseMode mode) {
  return mode >= PointwiseMode::relu_bwd && mode <= PointwiseMode::gelu_approx_tanh_bwd;
}

Descriptor& pointwise(OperationGraph& graph, int mode, DataType precision) {
  Descriptor& form = graph.make(DescriptorType::pointwise);
  form.set(Attribute::pointwise_mode, ValueType::pointwise_mode, mode);
  form.set(Attribute::pointwise_math_precision, precision);
  return form;
}

void set_parameters(Descriptor& form, const Pointwise& op) {
  switch (op.mode) {
    case PointwiseMode::relu_fwd:
    case PointwiseMode::relu_bwd:
      form.set(Attribute::pointwise_relu_lower_clip, op.relu_lower_clip);
      if (op.relu_upper_clip < std::numeric_limits<float>::max())
        form.set(Attribute::pointwise_relu_upper_clip, op.relu_upper_clip);
      if (op.relu_lower_slope != 0)
        form.set(Attribute::pointwise_relu_lower_slope, op.relu_lower_slope);
      break;
    case PointwiseMode::elu_fwd:
    case PointwiseMode::elu_bwd: form.set(Attribute::pointwise_elu_alpha, op.elu_alpha); break;
    case PointwiseMode::softplus_fwd:
    case PointwiseMode::softplus_bwd:
      form.set(Attribute::pointwise_softplus_beta, op.softplus_beta);
      break;
    case PointwiseMode::swish_fwd:
    case PointwiseMode::swish_bwd: form.set(Attribute::pointwise_swish_beta, op.swish_beta); break;
    case PointwiseMode::gen_index: form.set(Attribute::pointwise_axis, op.axis); break;
    default: break;
  }
}

bool is_small(const Graph& graph, TensorId operand, TensorId result) {
  return element_count(graph.tensor(operand).dims) < element_count(graph.tensor(result).dims);
}

// The library's engines support no alpha factors: a separate multiplication applies them.
const Descriptor& scaled(OperationGraph& graph, TensorId operand, double factor) {
  const Descriptor& x = graph.tensor(operand);
  if (factor == 1) return x;
  const Form form = form_of(graph.subgraph().graph.tensor(operand));
  const Descriptor& y = graph.temporary(form);
  add_pointwise(graph, PointwiseNumber::mul, x,
                &graph.number(factor, DataType::f32, form.dims.size()), y);
  return y;
}

bool commutes(const Pointwise& op) {
  return op.alpha1 == op.alpha2 &&
         (op.mode == PointwiseMode::add || op.mode == PointwiseMode::mul ||
          op.mode == PointwiseMode::min || op.mode == PointwiseMode::max);
}

}  // namespace

void translate(const Pointwise& op, const Node& node, OperationGraph& graph) {
  if (static_cast<std::size_t>(op.mode) >= kModes.size())
    throw Refused("the backend has no such pointwise mode");
  Descriptor& form =
      pointwise(graph, kModes[static_cast<std::size_t>(op.mode)], data_type(node.compute));
  set_parameters(form, op);
  form.finalize();

  std::vector<TensorId> in = node.inputs;
  in.resize(3, kNoTensor);
  const TensorId y = node.outputs[Pointwise::y];
  // The broadcast operand must come second.
  if (commutes(op) && is_small(graph.subgraph().graph, in[0], y)) std::swap(in[0], in[1]);
  const Descriptor* x = nullptr;
  const Descriptor* b = nullptr;
  if (!is_gradient(op.mode)) {
    x = &scaled(graph, in[0], in[0] == node.inputs[0] ? op.alpha1 : op.alpha2);
    if (in[1] != kNoTensor)
      b = &scaled(graph, in[1], in[1] == node.inputs[0] ? op.alpha1 : op.alpha2);
  }
  Descriptor& operation = graph.operation(DescriptorType::operation_pointwise);
  operation.set(Attribute::operation_pointwise_pointwise, form);
  if (is_gradient(op.mode)) {
    operation.set(Attribute::operation_pointwise_dy, graph.tensor(in[0]));
    operation.set(Attribute::operation_pointwise_x, graph.tensor(in[1]));
    operation.set(Attribute::operation_pointwise_dx, graph.tensor(y));
    return;
  }
  operation.set(Attribute::operation_pointwise_x, *x);
  if (b) operation.set(Attribute::operation_pointwise_b, *b);
  if (in[2] != kNoTensor) operation.set(Attribute::operation_pointwise_t, graph.tensor(in[2]));
  operation.set(Attribute::operation_pointwise_y, graph.tensor(y));
}

void add_pointwise(OperationGraph& graph, PointwiseNumber mode, const Descriptor& x,
                   const Descriptor* b, const Descriptor& y) {
  Descriptor& form = pointwise(graph, static_cast<int>(mode), DataType::f32);
  form.finalize();
  Descriptor& operation = graph.operation(DescriptorType::operation_pointwise);
  operation.set(Attribute::operation_pointwise_pointwise, form);
  operation.set(Attribute::operation_pointwise_x, x);
  if (b) operation.set(Attribute::operation_pointwise_b, *b);
  operation.set(Attribute::operation_pointwise_y, y);
}

void add_reduction(OperationGraph& graph, ReductionNumber mode, const Descriptor& x,
                   const Descriptor& y) {
  Descriptor& form = graph.make(DescriptorType::reduction);
  form.set(Attribute::reduction_operator, ValueType::reduction_operator, static_cast<int>(mode));
  form.set(Attribute::reduction_compute_type, DataType::f32);
  form.finalize();
  Descriptor& operation = graph.operation(DescriptorType::operation_reduction);
  operation.set(Attribute::operation_reduction_reduction, form);
  operation.set(Attribute::operation_reduction_x, x);
  operation.set(Attribute::operation_reduction_y, y);
}

void translate(const Reduction& op, const Node& node, OperationGraph& graph) {
  if (node.outputs.size() > 1 && node.outputs[Reduction::index] != kNoTensor)
    throw Refused("the backend's reductions have no index output");
  add_reduction(graph, static_cast<ReductionNumber>(kReductions[static_cast<std::size_t>(op.mode)]),
                graph.tensor(node.inputs[Reduction::x]), graph.tensor(node.outputs[Reduction::y]));
}

void translate(const Matmul&, const Node& node, OperationGraph& graph) {
  for (std::size_t i = Matmul::m_override; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNoTensor) throw Refused("M, N, K overrides are not translated");
  Descriptor& form = graph.make(DescriptorType::matmul);
  form.set(Attribute::matmul_compute_type, data_type(node.compute));
  form.finalize();
  Descriptor& operation = graph.operation(DescriptorType::operation_matmul);
  operation.set(Attribute::operation_matmul_a, graph.tensor(node.inputs[Matmul::a]));
  operation.set(Attribute::operation_matmul_b, graph.tensor(node.inputs[Matmul::b]));
  operation.set(Attribute::operation_matmul_c, graph.tensor(node.outputs[Matmul::c]));
  operation.set(Attribute::operation_matmul_matmul, form);
}

}  // namespace ashlar::bench::cudnn
