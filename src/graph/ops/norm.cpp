// Definition of normalisation.
#include "graph/norm_shapes.hpp"

#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Fills in the axes of layer, adaptive layer and rms norm, checks groups and ranks.
template <class Norm>
NormShapes normalise(NodeContext& node, Norm& op) {
  const bool adaptive = op.mode == NormMode::ada_layer;
  const bool by_axes = op.mode == NormMode::layer || op.mode == NormMode::rms || adaptive;
  node.require_rank(Norm::x, by_axes && !adaptive ? 1 : 2, kMaxRank);
  node.require_floating(Norm::x);
  const Dims& x = node.input(Norm::x).dims;
  if (by_axes && op.axes.empty() && node.has_input(Norm::scale)) {
    node.require_broadcastable(Norm::scale, x);
    for (int axis = adaptive ? 1 : 0; axis < x.rank(); ++axis)
      if (node.input(Norm::scale).dims[axis] != 1) op.axes.push_back(axis);
  }
  if (by_axes && op.axes.empty())
    for (int axis = x.rank() > 1 ? 1 : 0; axis < x.rank(); ++axis) op.axes.push_back(axis);
  if (!by_axes && !op.axes.empty())
    node.reject("axes", op.axes, "none: {} norm has fixed axes", enum_name(op.mode));
  std::array<bool, kMaxRank> seen{};
  for (std::int64_t& axis : op.axes) {
    node.normalise_axis("axes", axis, x.rank());
    if (seen[static_cast<std::size_t>(axis)]) node.reject("axes", op.axes, "each axis once");
    seen[static_cast<std::size_t>(axis)] = true;
  }
  if (adaptive && seen[0])
    node.reject("axes", op.axes, "axes above 0: ada_layer norm has parameters per index of axis 0");
  std::sort(op.axes.begin(), op.axes.end());
  if (op.mode == NormMode::group && (op.groups < 1 || x[1] % op.groups != 0))
    node.reject("groups", op.groups, "a divisor of the {} channels", x[1]);
  if (op.mode != NormMode::group && op.groups != 1)
    node.reject("groups", op.groups, "1: only group norm has groups");
  if (!(op.epsilon >= 0.0)) node.reject("epsilon", op.epsilon, "a value of at least 0");
  return norm_shapes(op.mode, x, op.axes, op.groups);
}

void infer_statistic(NodeContext& node, int slot, const Dims& dims) {
  node.infer_dims(slot, dims);
  node.infer_dtype(slot, node.input(0).dtype == f64 ? f64 : f32);
  node.infer_strides_like(slot, node.input(0));
}

void require_parameter(NodeContext& node, int slot, const Dims& dims) {
  node.require_dims(slot, dims);
  node.require_floating(slot);
}

void infer_norm_forward(NodeContext& node) {
  auto& op = node.op<NormForward>();
  const NormShapes shapes = normalise(node, op);
  const Tensor& x = node.input(NormForward::x);
  require_parameter(node, NormForward::scale, shapes.parameters);
  require_parameter(node, NormForward::bias, shapes.parameters);
  for (int slot : {NormForward::epsilon_tensor, NormForward::momentum_tensor}) {
    node.require_one_element(slot);
    node.require_floating(slot);
  }
  for (int slot : {NormForward::mean, NormForward::inv_variance})
    require_parameter(node, slot, shapes.statistics);
  for (int slot : {NormForward::running_mean, NormForward::running_var})
    require_parameter(node, slot, shapes.statistics);

  const bool batch = op.mode == NormMode::batch;
  const bool given = node.has_input(NormForward::mean) || node.has_input(NormForward::inv_variance);
  const bool running =
      node.has_input(NormForward::running_mean) || node.has_input(NormForward::running_var);
  if (node.has_input(NormForward::mean) != node.has_input(NormForward::inv_variance))
    node.reject("mean and inv_variance", "one of them", "both or neither");
  if (node.has_input(NormForward::running_mean) != node.has_input(NormForward::running_var))
    node.reject("running_mean and running_var", "one of them", "both or neither");
  if (running && !batch)
    node.reject("input running_mean", "a tensor", "none: only batch norm has running statistics");
  if (node.has_input(NormForward::momentum_tensor) && !batch)
    node.reject("input momentum_tensor", "a tensor",
                "none: only batch norm has running statistics");
  if (given && !(batch && op.phase == NormPhase::inference))
    node.reject("input mean", "a tensor", "none: only batch norm in inference reads statistics");
  if (batch && op.phase == NormPhase::inference && given == running)
    node.reject("statistics", given ? "both kinds" : "none",
                "mean and inv_variance, or running_mean and running_var");
  const bool next = node.has_output(NormForward::next_running_mean) ||
                    node.has_output(NormForward::next_running_var);
  if (next && !(running && op.phase == NormPhase::training))
    node.reject("output next_running_mean or next_running_var", "a tensor",
                "running_mean and running_var as inputs, in training");
  if (op.mode == NormMode::rms && node.has_output(NormForward::out_mean))
    node.reject("output out_mean", "a tensor", "none: rms norm has no mean");
  for (int slot : {NormForward::out_mean, NormForward::out_inv_variance})
    if (batch && op.phase == NormPhase::inference && node.has_output(slot))
      node.reject(
          fmt::format("output {}", node.traits().outputs[static_cast<std::size_t>(slot)].name),
          "a tensor", "none: batch norm in inference computes no statistics");

  node.infer_dims(NormForward::y, x.dims);
  node.infer_dtype(NormForward::y, x.dtype);
  node.infer_strides_like(NormForward::y, x);
  for (int slot : {NormForward::out_mean, NormForward::out_inv_variance,
                   NormForward::next_running_mean, NormForward::next_running_var})
    infer_statistic(node, slot, shapes.statistics);
}

void infer_norm_backward(NodeContext& node) {
  auto& op = node.op<NormBackward>();
  const NormShapes shapes = normalise(node, op);
  const Tensor& x = node.input(NormBackward::x);
  node.require_dims(NormBackward::dy, x.dims);
  node.require_floating(NormBackward::dy);
  require_parameter(node, NormBackward::scale, shapes.parameters);
  require_parameter(node, NormBackward::mean, shapes.statistics);
  require_parameter(node, NormBackward::inv_variance, shapes.statistics);
  node.require_one_element(NormBackward::epsilon_tensor);
  node.require_floating(NormBackward::epsilon_tensor);
  if (op.mode == NormMode::rms && node.has_input(NormBackward::mean))
    node.reject("input mean", "a tensor", "none: rms norm has no mean");
  if (op.mode != NormMode::rms &&
      node.has_input(NormBackward::mean) != node.has_input(NormBackward::inv_variance))
    node.reject("mean and inv_variance", "one of them", "both or neither");
  node.infer_dims(NormBackward::dx, x.dims);
  node.infer_dtype(NormBackward::dx, x.dtype);
  node.infer_strides_like(NormBackward::dx, x);
  for (int slot : {NormBackward::dscale, NormBackward::dbias})
    infer_statistic(node, slot, shapes.parameters);
}

Contents norm_forward_contents(const NodeShapes&, int slot) {
  switch (slot) {
    case NormForward::running_var:
    case NormForward::inv_variance: return positive_values();
    case NormForward::epsilon_tensor: return epsilons();
    case NormForward::momentum_tensor: return momenta();
    default: return {};
  }
}

Contents norm_backward_contents(const NodeShapes&, int slot) {
  if (slot == NormBackward::inv_variance) return positive_values();
  return slot == NormBackward::epsilon_tensor ? epsilons() : Contents{};
}

// Row norms read all of x and norm gradients all of dy exactly once. x is often an output too (the
// residual sum), and so is dy (the gradient of the residual branch).
bool stores_x_of_norm(const Op& op, int slot) {
  const NormMode mode = std::get<NormForward>(op).mode;
  return slot == NormForward::x &&
         (mode == NormMode::layer || mode == NormMode::rms || mode == NormMode::ada_layer);
}
bool stores_dy_of_norm(const Op&, int slot) { return slot == NormBackward::dy; }

std::vector<Value> sample_norm_forward(Graph& g, DType t) {
  const Value scale = g.input("scale", {1, 64}, parameter_dtype(t)),
              bias = g.input("bias", {1, 64}, parameter_dtype(t));
  return {g.norm(g.input("x", {4, 64}, t), {}, {.scale = scale, .bias = bias}).y};
}
std::vector<Value> sample_norm_backward(Graph& g, DType t) {
  const NormGradients gradients =
      g.norm_backward(g.input("x", {4, 64}, t), g.input("dy", {4, 64}, t), {},
                      {.scale = g.input("scale", {1, 64}, parameter_dtype(t))});
  return {gradients.dx, gradients.dscale, gradients.dbias};
}

// Batch norm in inference: its statistics are operands.
void fixed_norm_gradient(GradientContext& c) {
  using Self = NormForward;
  for (const int slot : {Self::mean, Self::inv_variance, Self::running_mean, Self::running_var})
    if (c.wants(slot)) c.refuse("statistics of batch norm in inference have none");
  const auto& op = c.op<Self>();
  const Value dy = c.dy(), scale = c.input(Self::scale);
  Value mean = c.input(Self::mean), inv_deviation = c.input(Self::inv_variance);
  if (!mean) {
    mean = c.input(Self::running_mean);
    Value epsilon = c.input(Self::epsilon_tensor);
    if (!epsilon) epsilon = c.constant(op.epsilon, mean.dims().rank());
    inv_deviation =
        c.pointwise(PointwiseMode::rsqrt,
                    {c.pointwise(PointwiseMode::add, {c.input(Self::running_var), epsilon})});
  }
  const Value dx = c.multiply(dy, inv_deviation);
  c.add(Self::x, scale ? c.multiply(dx, scale) : dx);
  if (c.wants(Self::scale))
    c.add(Self::scale, c.multiply(dx, c.pointwise(PointwiseMode::sub, {c.input(Self::x), mean})));
  c.add(Self::bias, dy);
}

void norm_forward_gradient(GradientContext& c) {
  using Self = NormForward;
  using Backward = NormBackward;
  c.only_output(Self::y);
  const auto& op = c.op<Self>();
  if (op.mode == NormMode::batch && op.phase == NormPhase::inference) return fixed_norm_gradient(c);
  const Backward backward{
      .mode = op.mode, .epsilon = op.epsilon, .groups = op.groups, .axes = op.axes};
  std::vector<AnyOperand> operands = c.shared_operands(backward);
  operands.push_back({Backward::dy, c.dy()});
  // Statistics that are absent are computed again from x.
  if (const Value mean = c.output(Self::out_mean)) operands.push_back({Backward::mean, mean});
  if (const Value inverse = c.output(Self::out_inv_variance))
    operands.push_back({Backward::inv_variance, inverse});
  std::vector<AnyWanted> wanted;
  if (c.wants(Self::scale)) wanted.push_back({Backward::dscale});
  if (c.wants(Self::bias)) wanted.push_back({Backward::dbias});
  const auto out = c.graph().apply_any(backward, operands, wanted);
  c.add(Self::x, out[Backward::dx]);
  if (c.wants(Self::scale)) c.add(Self::scale, out[Backward::dscale]);
  if (c.wants(Self::bias)) c.add(Self::bias, out[Backward::dbias]);
}

}  // namespace

template <>
OpTraits define_traits<NormForward>() {
  return {.name = "norm_forward",
          .doc_page = "norm",
          .infer = infer_norm_forward,
          .gradient = norm_forward_gradient,
          .sample = sample_norm_forward,
          .contents = norm_forward_contents,
          .fused_inputs = {NormForward::x},
          .stores_input = stores_x_of_norm,
          .draws_in_epilogue = true};
}

template <>
OpTraits define_traits<NormBackward>() {
  return {.name = "norm_backward",
          .doc_page = "norm",
          .infer = infer_norm_backward,
          .sample = sample_norm_backward,
          .contents = norm_backward_contents,
          .fused_inputs = {NormBackward::x, NormBackward::dy},
          .stores_input = stores_dy_of_norm};
}

}  // namespace ashlar
