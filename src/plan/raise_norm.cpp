// Raises mean, sub, square, mean, add epsilon, rsqrt, mul [, mul scale [, add bias]] to
// norm_forward: layer norm; without the mean RMS norm; with a separate scale for every index of the
// first axis adaptive layer norm.
#include <fmt/format.h>

#include "graph/enum_names.hpp"
#include "graph/norm_shapes.hpp"
#include "plan/lowered.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

struct NormMatch {
  NormForward op;
  TensorId x = kNoTensor, mean = kNoTensor, inv_variance = kNoTensor;
  TensorId epsilon = kNoTensor;  // if it is not a constant
  std::vector<TensorId> inner;   // intermediates that are removed
};

// The average of `source` over some axes: an avg reduction, or a sum times 1/n.
std::optional<ReductionMatch> match_average(const GraphEditor& editor, TensorId id,
                                            std::vector<TensorId>& inner) {
  if (auto average = match_reduction(editor, id, ReductionMode::avg)) return average;
  const Node* product = plain(editor, id, PointwiseMode::mul);
  if (!product) return std::nullopt;
  const auto operands =
      split_operands(*product, [&](TensorId t) { return constant_value(editor, t).has_value(); });
  if (!operands) return std::nullopt;
  const auto sum = match_reduction(editor, operands->second, ReductionMode::add);
  if (!sum || editor.uses(operands->second) != 1) return std::nullopt;
  double n = 1;
  for (std::int64_t axis : sum->axes)
    n *= static_cast<double>(editor.tensor(sum->source).dims[static_cast<int>(axis)]);
  if (std::fabs(*constant_value(editor, operands->first) * n - 1.0) > 1e-6) return std::nullopt;
  inner.push_back(operands->second);
  return sum;
}

// The tensor that `id` is the square of.
TensorId match_square(const GraphEditor& editor, TensorId id) {
  if (const Node* product = plain(editor, id, PointwiseMode::mul))
    if (product->inputs[0] == product->inputs[1]) return product->inputs[0];
  if (const Node* power = plain(editor, id, PointwiseMode::pow))
    if (constant_value(editor, power->inputs[1]) == 2.0) return power->inputs[0];
  return kNoTensor;
}

// `product` is difference * inv_variance.
std::optional<NormMatch> match_norm(const GraphEditor& editor, const Node& product) {
  NormMatch m;
  const auto operands = split_operands(
      product, [&](TensorId t) { return plain(editor, t, PointwiseMode::rsqrt) != nullptr; });
  if (!operands) return std::nullopt;
  m.inv_variance = operands->first;
  const TensorId centred = operands->second;
  const TensorId shifted = editor.producer(m.inv_variance)->inputs[0];
  const Node* add = plain(editor, shifted, PointwiseMode::add);
  if (!add) return std::nullopt;
  const auto with_epsilon = split_operands(*add, [&](TensorId t) {
    return element_count(editor.tensor(t).dims) == 1 && !editor.producer(t) &&
           is_floating(editor.tensor(t).dtype);
  });
  if (!with_epsilon) return std::nullopt;
  if (const auto epsilon = constant_value(editor, with_epsilon->first))
    m.op.epsilon = *epsilon;
  else
    m.epsilon = with_epsilon->first;
  if (!(m.op.epsilon >= 0)) return std::nullopt;
  const TensorId variance = with_epsilon->second;
  const auto mean_square = match_average(editor, variance, m.inner);
  if (!mean_square) return std::nullopt;
  const TensorId square = mean_square->source;
  if (match_square(editor, square) != centred) return std::nullopt;
  m.op.axes = mean_square->axes;
  if (m.op.axes.empty())
    return std::nullopt;  // averages over extents of 1 only; empty axes of a norm mean its defaults
  m.inner.insert(m.inner.end(), {shifted, variance, square});
  for (TensorId inner : {shifted, variance, square})
    if (editor.uses(inner) != 1) return std::nullopt;

  m.op.mode = NormMode::rms;
  m.x = centred;
  if (const Node* difference = plain(editor, centred, PointwiseMode::sub)) {
    const auto mean = match_average(editor, difference->inputs[1], m.inner);
    // The difference is read by the square (twice if the square is a mul) and by the result.
    const bool squared_by_product = editor.produced_by(square, PointwiseMode::mul) != nullptr;
    if (mean && mean->source == difference->inputs[0] && mean->axes == m.op.axes &&
        editor.uses(centred) == (squared_by_product ? 3 : 2)) {
      m.op.mode = NormMode::layer;
      m.x = mean->source;
      m.mean = difference->inputs[1];
      m.inner.push_back(centred);
    }
  }
  if (!may_vanish(editor, m.inv_variance) || (m.mean != kNoTensor && !may_vanish(editor, m.mean)))
    return std::nullopt;
  for (TensorId inner : m.inner)
    if (!may_vanish(editor, inner)) return std::nullopt;
  return is_floating(editor.tensor(m.x).dtype) ? std::optional(m) : std::nullopt;
}

// If the only reader of `y` is a `mode` with a parameter of the given shape, absorbs it into the
// norm and returns the parameter.
TensorId absorb(GraphEditor& editor, TensorId& y, PointwiseMode mode, const Dims& shape,
                std::vector<NodeId>& absorbed) {
  if (editor.uses(y) != 1 || editor.consumers(y).size() != 1 || !may_vanish(editor, y))
    return kNoTensor;
  const NodeId id = editor.consumers(y)[0];
  const Node& node = editor.node(id);
  if (!std::holds_alternative<Pointwise>(node.op) || !plain(editor, node.outputs[0], mode))
    return kNoTensor;
  const auto operands = split_operands(node, [&](TensorId t) {
    return t != y && editor.tensor(t).dims == shape && is_floating(editor.tensor(t).dtype);
  });
  if (!operands || operands->second != y) return kNoTensor;
  y = node.outputs[0];
  absorbed.push_back(id);
  return operands->first;
}

}  // namespace

void raise_norm(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  for (NodeId id = 0; id < count; ++id) {
    if (editor.removed(id)) continue;
    const Node product = editor.node(id);
    if (!std::holds_alternative<Pointwise>(product.op) ||
        !plain(editor, product.outputs[0], PointwiseMode::mul))
      continue;
    auto m = match_norm(editor, product);
    if (!m) continue;
    const Dims& x = editor.tensor(m->x).dims;
    NormShapes shapes = norm_shapes(m->op.mode, x, m->op.axes, 1);
    TensorId y = product.outputs[0];
    std::vector<NodeId> absorbed;
    TensorId scale = absorb(editor, y, PointwiseMode::mul, shapes.parameters, absorbed);
    if (scale == kNoTensor && m->op.mode == NormMode::layer && m->op.axes[0] != 0) {
      shapes = norm_shapes(NormMode::ada_layer, x, m->op.axes, 1);
      scale = absorb(editor, y, PointwiseMode::mul, shapes.parameters, absorbed);
      if (scale != kNoTensor) m->op.mode = NormMode::ada_layer;
    }
    const TensorId bias = scale == kNoTensor
                              ? kNoTensor
                              : absorb(editor, y, PointwiseMode::add, shapes.parameters, absorbed);

    // Statistics become outputs of the norm if other nodes read them.
    const bool keeps_mean = m->mean != kNoTensor && editor.uses(m->mean) > 1;
    const bool keeps_inv_variance = editor.uses(m->inv_variance) > 1;
    editor.remove(id);
    for (NodeId node : absorbed) editor.remove(node);
    for (TensorId inner : m->inner) editor.remove(editor.producer_id(inner));
    editor.remove(editor.producer_id(m->inv_variance));
    if (m->mean != kNoTensor) editor.remove(editor.producer_id(m->mean));
    editor.add(
        {product.name + "_norm",
         m->op,
         {m->x, scale, bias, m->epsilon},
         {y, keeps_mean ? m->mean : kNoTensor, keeps_inv_variance ? m->inv_variance : kNoTensor},
         product.compute});
    lowered.notes.push_back(
        fmt::format("raised the small operations ending in '{}' to norm_forward ({})",
                    editor.tensor(y).name, enum_name(m->op.mode)));
  }
  editor.finish();
}

}  // namespace ashlar
