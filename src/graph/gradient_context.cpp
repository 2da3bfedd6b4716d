// GradientContext: operands, building blocks and sums of gradients, shared by the rules of
// src/graph/ops.
#include "graph/gradient_context.hpp"

#include <array>

#include "base/fail.hpp"
#include "graph/node_context.hpp"

namespace ashlar {

GradientContext::GradientContext(Graph& graph, NodeId id, GradientState& state)
    : graph_(graph), id_(id), node_(graph.nodes()[static_cast<std::size_t>(id)]), state_(state) {}

Value GradientContext::value_at(const std::vector<TensorId>& ids, int slot) const {
  if (std::cmp_greater_equal(slot, ids.size())) return {};
  const TensorId id = ids[static_cast<std::size_t>(slot)];
  return id == kNoTensor ? Value() : graph_.value(id);
}

Value GradientContext::require_output(int slot) {
  if (const Value present = output(slot)) return present;
  const OpTraits& traits = traits_of(node_.op);
  Tensor tensor;
  tensor.name = node_.name + "." + std::string(traits.outputs[static_cast<std::size_t>(slot)].name);
  tensor.infer_dtype = true;
  GraphData& data = GraphAccess::data(graph_);
  const TensorId added = graph_.add_tensor(tensor);
  node_.outputs[static_cast<std::size_t>(slot)] = added;
  // Inference requires a node whose outputs have no producer.
  for (const TensorId id : node_.outputs)
    if (id != kNoTensor) data.producers[static_cast<std::size_t>(id)] = kNoNode;
  NodeContext context(data, node_);
  traits.infer(context);
  data.tensors[static_cast<std::size_t>(added)] = context.outputs()[static_cast<std::size_t>(slot)];
  for (const TensorId id : node_.outputs)
    if (id != kNoTensor) data.producers[static_cast<std::size_t>(id)] = id_;
  data.nodes[static_cast<std::size_t>(id_)] = node_;
  return graph_.value(added);
}

bool GradientContext::wants(int slot) const {
  const Value x = input(slot);
  return x && state_.active[static_cast<std::size_t>(x.id())];
}

Value GradientContext::dy(int slot) const {
  const Value y = output(slot);
  if (!y || std::cmp_greater_equal(y.id(), state_.terms.size())) return {};
  const auto& terms = state_.terms[static_cast<std::size_t>(y.id())];
  return terms.empty() ? Value() : terms.front();
}

void GradientContext::only_output(int slot) const {
  for (int other = 0; std::cmp_less(other, node_.outputs.size()); ++other)
    if (other != slot && dy(other))
      refuse(fmt::format("its output {} has none",
                         traits_of(node_.op).outputs[static_cast<std::size_t>(other)].name));
}

OutputSpec GradientContext::spec(int slot) const {
  const Value x = input(slot);
  const bool is_result = state_.is_result[static_cast<std::size_t>(x.id())];
  OutputSpec spec;
  spec.dtype = is_result ? state_.result_dtype.value_or(x.dtype()) : x.dtype();
  spec.dims = x.dims();
  spec.layout = packed_strides_like(x.dims(), x.tensor().strides);
  return spec;
}

void GradientContext::add(int slot, Value gradient) {
  if (!wants(slot)) return;
  const Value x = input(slot);
  const DType dtype = *spec(slot).dtype;
  const int rank = gradient.dims().rank(), missing = rank - x.dims().rank();
  Dims axes;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t extent = axis < missing ? 1 : x.dims()[axis - missing];
    if (gradient.dims()[axis] != extent) axes.push_back(axis);
  }
  if (!axes.empty()) gradient = graph_.reduce(gradient, ReductionMode::add, axes, {.dtype = dtype});
  if (gradient.dims() != x.dims()) gradient = graph_.reshape(gradient, x.dims());
  if (gradient.dtype() != dtype)
    gradient =
        graph_.pointwise(PointwiseMode::identity, std::array{gradient}, {}, {.dtype = dtype});
  auto& terms = state_.terms[static_cast<std::size_t>(x.id())];
  if (terms.empty())
    terms.push_back(gradient);
  else
    terms.front() = graph_.pointwise(PointwiseMode::add, std::array{terms.front(), gradient}, {},
                                     {.dtype = dtype});
}

Value GradientContext::pointwise(PointwiseMode mode, std::initializer_list<Value> operands,
                                 Pointwise attributes) const {
  const bool is_boolean = mode >= PointwiseMode::cmp_eq && mode <= PointwiseMode::cmp_le;
  OutputSpec spec;
  spec.dtype = is_boolean ? boolean : wide();
  spec.compute = wide();
  return graph_.pointwise(mode, std::span(operands.begin(), operands.size()), attributes, spec);
}

Value GradientContext::multiply(Value a, Value b, double factor) const {
  return pointwise(PointwiseMode::mul, {a, b}, {.alpha1 = factor});
}

Value GradientContext::scale(Value x, double factor) const {
  return factor == 1.0 ? x : pointwise(PointwiseMode::identity, {x}, {.alpha1 = factor});
}

Value GradientContext::constant(double value, int rank) const {
  return graph_.constant(value, wide(), rank);
}

Value GradientContext::select_or_zero(Value predicate, Value x, double factor) const {
  return pointwise(PointwiseMode::binary_select,
                   {x, constant(0.0, predicate.dims().rank()), predicate}, {.alpha1 = factor});
}

Value GradientContext::multiply_by_sign(Value gradient, Value x) const {
  const Value zero = constant(0.0, x.dims().rank());
  const Value negative =
      select_or_zero(pointwise(PointwiseMode::cmp_lt, {x, zero}), gradient, -1.0);
  return pointwise(PointwiseMode::binary_select,
                   {gradient, negative, pointwise(PointwiseMode::cmp_gt, {x, zero})});
}

Value GradientContext::expand(Value x, Value like) const {
  if (x.dims() == like.dims()) return x;
  OutputSpec spec{.dtype = wide(), .dims = like.dims(), .compute = wide()};
  spec.layout = packed_strides_like(like.dims(), like.tensor().strides);
  return graph_.pointwise(PointwiseMode::identity, std::array{x}, {}, spec);
}

std::vector<AnyOperand> GradientContext::shared_operands(const Op& backward) const {
  std::vector<AnyOperand> operands;
  const std::span<const Slot> ours = traits_of(node_.op).inputs;
  const std::span<const Slot> theirs = traits_of(backward).inputs;
  for (std::size_t to = 0; to < theirs.size(); ++to)
    for (std::size_t from = 0; from < ours.size(); ++from)
      if (ours[from].name == theirs[to].name && input(static_cast<int>(from)))
        operands.push_back({static_cast<int>(to), input(static_cast<int>(from))});
  return operands;
}

void GradientContext::refuse(std::string_view reason) const {
  fail(ErrorCode::invalid_argument, "gradients: {} '{}': no gradient: {}", traits_of(node_.op).name,
       node_.name, reason);
}

}  // namespace ashlar
