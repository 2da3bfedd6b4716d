// Definition of causal convolution.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Checks shared by forward and backward; returns the dims of a state.
template <class Self>
Dims check_common(NodeContext& node) {
  node.require_rank(Self::x, 3, 3);
  node.require_rank(Self::w, 2, 2);
  const Dims& x = node.input(Self::x).dims;
  const Dims& w = node.input(Self::w).dims;
  for (const int slot : {Self::x, Self::w, Self::bias, Self::initial_state})
    node.require_floating(slot);
  if (w[0] != x[1])
    node.reject(fmt::format("channels of {}", node.input_name(Self::w)), w[0], "{}, those of x",
                x[1]);
  if (w[1] < 1)
    node.reject(fmt::format("extent 1 of {}", node.input_name(Self::w)), w[1], "at least 1");
  node.require_dims(Self::bias, {x[1]});
  const Dims state = {x[0], x[1], w[1] - 1};
  node.require_dims(Self::initial_state, state);
  return state;
}

void infer_causal_conv_forward(NodeContext& node) {
  using Self = CausalConvForward;
  const Dims state = check_common<Self>(node);
  const Tensor& x = node.input(Self::x);
  node.infer_dims(Self::y, x.dims);
  node.infer_dims(Self::final_state, state);
  for (const int slot : {Self::y, Self::final_state}) {
    node.infer_dtype(slot, x.dtype);
    node.infer_strides_like(slot, x);
  }
}

void infer_causal_conv_backward(NodeContext& node) {
  using Self = CausalConvBackward;
  const Dims state = check_common<Self>(node);
  const Tensor& x = node.input(Self::x);
  const Tensor& w = node.input(Self::w);
  node.require_floating(Self::dy);
  node.require_dims(Self::dy, x.dims);
  if (node.has_output(Self::dinitial_state) && !node.has_input(Self::initial_state))
    node.reject("initial_state", "nothing", "a tensor: dinitial_state is its gradient");
  node.infer_dims(Self::dx, x.dims);
  node.infer_dims(Self::dw, w.dims);
  node.infer_dims(Self::dbias, {x.dims[1]});
  node.infer_dims(Self::dinitial_state, state);
  for (const int slot : {Self::dx, Self::dinitial_state}) {
    node.infer_dtype(slot, x.dtype);
    node.infer_strides_like(slot, x);
  }
  for (const int slot : {Self::dw, Self::dbias}) {
    node.infer_dtype(slot, w.dtype);
    node.infer_strides_like(slot, w);
  }
}

// The backward pass computes the activations again, dx and dw.
template <class Self>
double causal_conv_flops(const NodeShapes& node) {
  constexpr double kPerTap = std::is_same_v<Self, CausalConvForward> ? 2 : 6;
  return kPerTap * count_of(node.output(0)) * static_cast<double>(node.input(Self::w)[1]);
}

std::vector<Value> sample_causal_conv_forward(Graph& g, DType t) {
  using Op = CausalConvForward;
  return g
      .apply(Op{}, {{Op::x, g.input("x", {2, 8, 16}, t)}, {Op::w, g.input("w", {8, 4}, t)}},
             {Op::y})
      .all();
}
std::vector<Value> sample_causal_conv_backward(Graph& g, DType t) {
  using Op = CausalConvBackward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {2, 8, 16}, t)},
              {Op::w, g.input("w", {8, 4}, t)},
              {Op::dy, g.input("dy", {2, 8, 16}, t)}},
             {Op::dx, Op::dw})
      .all();
}

void causal_conv_gradient(GradientContext& c) {
  using Self = CausalConvForward;
  using Backward = CausalConvBackward;
  c.only_output(Self::y);
  Backward op;
  static_cast<CausalConvAttributes&>(op) = c.op<Self>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  operands.push_back({Backward::dy, c.dy()});
  constexpr std::pair<int, int> kGradients[] = {{Self::w, Backward::dw},
                                                {Self::bias, Backward::dbias},
                                                {Self::initial_state, Backward::dinitial_state}};
  std::vector<AnyWanted> wanted;
  for (const auto& [input, gradient] : kGradients)
    if (c.wants(input)) wanted.push_back({gradient});
  const auto out = c.graph().apply_any(op, operands, wanted);
  c.add(Self::x, out[Backward::dx]);
  for (const auto& [input, gradient] : kGradients)
    if (c.wants(input)) c.add(input, out[static_cast<std::size_t>(gradient)]);
}

}  // namespace

template <>
OpTraits define_traits<CausalConvForward>() {
  return {.name = "causal_conv_forward",
          .doc_page = "causal_convolution",
          .infer = infer_causal_conv_forward,
          .gradient = causal_conv_gradient,
          .sample = sample_causal_conv_forward,
          .flops = causal_conv_flops<CausalConvForward>,
          .is_compute_bound = true,
          .fused_inputs = {CausalConvForward::x}};
}

template <>
OpTraits define_traits<CausalConvBackward>() {
  return {.name = "causal_conv_backward",
          .doc_page = "causal_convolution",
          .infer = infer_causal_conv_backward,
          .sample = sample_causal_conv_backward,
          .flops = causal_conv_flops<CausalConvBackward>,
          .is_compute_bound = true,
          .fused_inputs = {CausalConvBackward::x, CausalConvBackward::dy}};
}

}  // namespace ashlar
