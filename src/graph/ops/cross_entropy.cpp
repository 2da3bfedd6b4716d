// Definition of cross_entropy_forward, cross_entropy_backward.
#include <cmath>

#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Checks x, target and the attributes; returns the dims of one value per row.
template <class Self>
Dims check_rows(NodeContext& node) {
  const auto& op = node.op<Self>();
  node.require_rank(Self::x, 1, kMaxRank);
  node.require_floating(Self::x);
  Dims rows = node.input(Self::x).dims;
  const int axis = rows.rank() - 1;
  if (rows[axis] < 1)
    node.reject(fmt::format("classes of {}", node.input_name(Self::x)), rows[axis], "at least 1");
  rows[axis] = 1;
  node.require_integer(Self::target);
  node.require_dims(Self::target, rows);
  if (!(op.label_smoothing >= 0.0 && op.label_smoothing <= 1.0))
    node.reject("label_smoothing", op.label_smoothing, "a value in [0, 1]");
  return rows;
}

template <class Self>
Dims loss_dims(const Self& op, const Dims& rows) {
  return op.mean ? Dims::filled(rows.rank(), 1) : rows;
}

void infer_cross_entropy_forward(NodeContext& node) {
  using Self = CrossEntropyForward;
  const Dims rows = check_rows<Self>(node);
  const Tensor& x = node.input(Self::x);
  node.infer_dims(Self::loss, loss_dims(node.op<Self>(), rows));
  node.infer_dims(Self::stats, rows);
  for (const int slot : {Self::loss, Self::stats}) {
    node.infer_dtype(slot, parameter_dtype(x.dtype));
    node.infer_strides_like(slot, x);
  }
}

void infer_cross_entropy_backward(NodeContext& node) {
  using Self = CrossEntropyBackward;
  const Dims rows = check_rows<Self>(node);
  const Tensor& x = node.input(Self::x);
  node.require_floating(Self::stats);
  node.require_dims(Self::stats, rows);
  node.require_floating(Self::dloss);
  node.require_dims(Self::dloss, loss_dims(node.op<Self>(), rows));
  node.infer_dims(Self::dx, x.dims);
  node.infer_dtype(Self::dx, x.dtype);
  node.infer_strides_like(Self::dx, x);
}

// The gradient of stats, the log of the sum of exp(x), is p = exp(x - stats).
void cross_entropy_gradient(GradientContext& c) {
  using Self = CrossEntropyForward;
  using Backward = CrossEntropyBackward;
  const Self& op = c.op<Self>();
  const Value x = c.input(Self::x), stats = c.require_output(Self::stats);
  if (const Value dloss = c.dy(Self::loss)) {
    Backward backward;
    backward.label_smoothing = op.label_smoothing;
    backward.ignore_index = op.ignore_index;
    backward.mean = op.mean;
    const std::vector<Operand<Backward>> operands = {{Backward::x, x},
                                                     {Backward::target, c.input(Self::target)},
                                                     {Backward::stats, stats},
                                                     {Backward::dloss, dloss}};
    const std::vector<Wanted<Backward>> wanted = {Backward::dx};
    c.add(Self::x, c.graph().apply(backward, operands, wanted, c.spec(Self::x)));
  }
  if (const Value dstats = c.dy(Self::stats)) {
    const Value p = c.pointwise(PointwiseMode::exp, {c.pointwise(PointwiseMode::sub, {x, stats})});
    c.add(Self::x, c.multiply(dstats, p));
  }
}

template <class Self>
std::int64_t class_count(const NodeShapes& node) {
  const Dims& x = node.input(Self::x);
  return x[x.rank() - 1];
}

// Mostly classes, one row in eight ignored. Any other value is defined too: a loss of NaN.
template <class Self>
Contents target_contents(const NodeShapes& node, int slot) {
  if (slot != Self::target) return {};
  constexpr double kIgnored = 0.125, kOutside = 3;
  const auto classes = static_cast<double>(class_count<Self>(node));
  const auto ignore_index = static_cast<double>(node.op<Self>().ignore_index);
  return {.kind = Contents::Kind::by_element,
          .low = 0,
          .high = classes - 1,
          .below = kOutside,
          .above = kOutside,
          .element = [=](std::int64_t, double random) {
            if (random < kIgnored) return ignore_index;
            return std::floor((random - kIgnored) / (1 - kIgnored) * classes);
          }};
}

// One exponential and a few operations per class.
template <class Self>
double cross_entropy_flops(const NodeShapes& node) {
  constexpr double kPerClass = 13;
  return kPerClass * count_of(node.input(Self::x));
}

std::vector<Value> sample_cross_entropy_forward(Graph& g, DType t) {
  using Op = CrossEntropyForward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {4, 64}, t)}, {Op::target, g.input("target", {4, 1}, i64)}},
             {Op::loss, Op::stats})
      .all();
}
std::vector<Value> sample_cross_entropy_backward(Graph& g, DType t) {
  using Op = CrossEntropyBackward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {4, 64}, t)},
              {Op::target, g.input("target", {4, 1}, i64)},
              {Op::stats, g.input("stats", {4, 1}, parameter_dtype(t))},
              {Op::dloss, g.input("dloss", {4, 1}, parameter_dtype(t))}},
             {Op::dx})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<CrossEntropyForward>() {
  using Self = CrossEntropyForward;
  return {.name = "cross_entropy_forward",
          .doc_page = "cross_entropy",
          .infer = infer_cross_entropy_forward,
          .gradient = cross_entropy_gradient,
          .sample = sample_cross_entropy_forward,
          .contents = target_contents<Self>,
          .flops = cross_entropy_flops<Self>,
          .fused_inputs = {Self::x}};
}

template <>
OpTraits define_traits<CrossEntropyBackward>() {
  using Self = CrossEntropyBackward;
  return {.name = "cross_entropy_backward",
          .doc_page = "cross_entropy",
          .infer = infer_cross_entropy_backward,
          .sample = sample_cross_entropy_backward,
          .contents = target_contents<Self>,
          .flops = cross_entropy_flops<Self>,
          .arithmetic_inputs = {Self::x, Self::stats, Self::dloss},
          .fused_inputs = {Self::x, Self::dloss}};
}

}  // namespace ashlar
