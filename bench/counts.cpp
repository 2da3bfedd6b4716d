#include "counts.hpp"

#include <algorithm>

namespace ashlar::bench {

namespace {

double count(const Dims& dims) { return static_cast<double>(element_count(dims)); }

class Arithmetic {
 public:
  Arithmetic(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  double operator()(const ConvForward&) const { return conv(out(), in(ConvForward::w)); }
  double operator()(const ConvBackwardData&) const {
    return conv(in(ConvBackwardData::dy), in(ConvBackwardData::w));
  }
  double operator()(const ConvBackwardFilter&) const {
    return conv(in(ConvBackwardFilter::dy), out());
  }
  double operator()(const Matmul&) const {
    const Dims& a = in(Matmul::a);
    return 2 * count(out()) * static_cast<double>(a[a.rank() - 1]);
  }
  // q k^T over D and p v over Dv, for every unmasked score.
  double operator()(const AttentionForward& op) const {
    const Dims &q = in(AttentionForward::q), &k = in(AttentionForward::k),
               &v = in(AttentionForward::v);
    return 2 * scores(op, q, k) * static_cast<double>(q[3] + v[3]);
  }
  // Recomputed scores, dp = do v^T, dv = p^T do, dq = ds k, dk = ds^T q.
  double operator()(const AttentionBackward& op) const {
    const Dims &q = in(AttentionBackward::q), &k = in(AttentionBackward::k),
               &v = in(AttentionBackward::v);
    return 2 * scores(op, q, k) * static_cast<double>(3 * q[3] + 2 * v[3]);
  }
  // One multiply-add per weight and row of x (or of the state).
  double operator()(const RnnForward&) const {
    return rows(in(RnnForward::x)) * 2 * count(in(RnnForward::weights));
  }
  double operator()(const RnnBackwardData&) const {
    return rows(in(RnnBackwardData::dy)) * 2 * count(in(RnnBackwardData::weights));
  }
  double operator()(const RnnBackwardWeights&) const {
    return rows(in(RnnBackwardWeights::x)) * 2 * count(out());
  }
  template <class Op>
  double operator()(const Op&) const {
    return 0;
  }

 private:
  const Dims& in(int slot) const {
    return graph_.tensor(node_.inputs[static_cast<std::size_t>(slot)]).dims;
  }
  const Dims& out() const { return graph_.tensor(node_.outputs[0]).dims; }
  // One multiply-add per element of y and weight of its output channel.
  static double conv(const Dims& y, const Dims& w) {
    return 2 * count(y) * count(w) / static_cast<double>(w[0]);
  }
  static double rows(const Dims& dims) {
    return count(dims) / static_cast<double>(dims[dims.rank() - 1]);
  }
  static double scores(const AttentionAttributes& op, const Dims& q, const Dims& k) {
    const std::int64_t shift = op.alignment == MaskAlignment::bottom_right ? k[2] - q[2] : 0;
    double unmasked = 0;  // scores of one head
    for (std::int64_t row = 0; row < q[2]; ++row) {
      const std::int64_t last = op.right_bound ? row + shift + *op.right_bound : k[2] - 1;
      const std::int64_t first = op.left_bound ? row + shift - *op.left_bound + 1 : 0;
      unmasked += static_cast<double>(std::max<std::int64_t>(
          0, std::min(last, k[2] - 1) - std::max<std::int64_t>(first, 0) + 1));
    }
    return static_cast<double>(q[0] * q[1]) * unmasked;
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

double arithmetic(const Graph& graph) {
  double total = 0;
  for (const Node& node : graph.nodes()) total += std::visit(Arithmetic(graph, node), node.op);
  return total;
}

bool is_int8(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (std::visit(Arithmetic(graph, node), node.op) > 0)
      return bit_width(graph.tensor(node.inputs[0]).dtype) == 8 &&
             is_integer(graph.tensor(node.inputs[0]).dtype);
  return false;
}

double traffic(const Graph& graph) {
  double total = 0;
  for (const TensorId id : graph.bound_tensors())
    total += static_cast<double>(byte_size(graph.tensor(id)));
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<Slice>(node.op) || std::holds_alternative<Gather>(node.op))
      total -= std::max(0.0, static_cast<double>(byte_size(graph.tensor(node.inputs[0])) -
                                                 byte_size(graph.tensor(node.outputs[0]))));
  return total;
}

double work(const Graph& graph) { return std::max(arithmetic(graph), traffic(graph) / 4); }

}  // namespace ashlar::bench
