#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ashlar::cli {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string duration_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

class OperationCounter {
 public:
  OperationCounter(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  double operator()(const ConvForward&) const { return conv(output(0), input(ConvForward::w)); }
  double operator()(const ConvBackwardData&) const {
    return conv(input(ConvBackwardData::dy), input(ConvBackwardData::w));
  }
  double operator()(const ConvBackwardFilter&) const {
    return conv(input(ConvBackwardFilter::dy), output(0));
  }
  double operator()(const Matmul&) const {
    const Dims& a = input(Matmul::a);
    const bool complex = is_complex(graph_.tensor(node_.outputs[0]).dtype);
    return (complex ? 8 : 2) * count(output(0)) * static_cast<double>(a[a.rank() - 1]);
  }
  double operator()(const MoeGroupedMatmul&) const {
    return 2 * count(output(0)) * static_cast<double>(input(MoeGroupedMatmul::token)[2]);
  }
  double operator()(const MoeGroupedMatmulBackward&) const {
    using Op = MoeGroupedMatmulBackward;
    const double products = node_.outputs[Op::dtoken] == kNoTensor ? 1 : 2;
    return 2 * products * count(input(Op::doutput)) * static_cast<double>(input(Op::token)[2]);
  }
  double operator()(const CausalConvForward&) const {
    return 2 * count(output(0)) * static_cast<double>(input(CausalConvForward::w)[1]);
  }
  // The sums again, dx and dw.
  double operator()(const CausalConvBackward&) const {
    return 6 * count(output(0)) * static_cast<double>(input(CausalConvBackward::w)[1]);
  }
  double operator()(const AttentionForward& op) const {
    return attention(op, input(AttentionForward::q), input(AttentionForward::k),
                     input(AttentionForward::v), 1, 1);
  }
  // q k^T again, and the products for dq and dk on the head dim; dp and dv on that of v.
  double operator()(const AttentionBackward& op) const {
    return attention(op, input(AttentionBackward::q), input(AttentionBackward::k),
                     input(AttentionBackward::v), 3, 2);
  }
  // A multiply-add per corner of the cell a position lies in.
  double operator()(const GridSampleForward&) const {
    return 2 * count(output(0)) * corners(GridSampleForward::x);
  }
  // Once to dx and once per coordinate to dgrid.
  double operator()(const GridSampleBackward&) const {
    const int axes = input(GridSampleBackward::x).rank() - 2;
    return 2 * (1 + axes) * count(input(GridSampleBackward::dy)) * corners(GridSampleBackward::x);
  }
  double operator()(const RnnForward&) const { return recurrent(input(RnnForward::weights)); }
  double operator()(const RnnBackwardData&) const {
    return recurrent(input(RnnBackwardData::weights));
  }
  double operator()(const RnnBackwardWeights&) const { return recurrent(output(0)); }
  double operator()(const MultiHeadAttentionForward& op) const { return multi_head(op, 1); }
  // The forward again and, of every product, its gradients for one operand.
  double operator()(const MultiHeadAttentionBackwardData& op) const { return multi_head(op, 2); }
  double operator()(const MultiHeadAttentionBackwardWeights& op) const { return multi_head(op, 2); }
  template <class Op>
  double operator()(const Op&) const {
    double total = 0;
    for (const TensorId id : node_.outputs)
      if (id != kNoTensor) total += count(graph_.tensor(id).dims);
    return total;
  }

 private:
  // Projections of queries, keys, values and results, and the products of attention.
  double multi_head(const MultiHeadAttentionAttributes& op, double times) const {
    const Dims& q = input(0);
    const Dims& k = input(1);
    const Dims& v = input(2);
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const double head = real(op.q_projection > 0 ? op.q_projection : q[3]);
    const double value = real(op.v_projection > 0 ? op.v_projection : v[3]);
    const double heads = real(op.heads), steps = count(q) / real(q[3]);
    return times * 2 * heads *
           (count(q) * real(op.q_projection) + count(k) * real(op.k_projection) +
            count(v) * real(op.v_projection) + steps * value * real(op.o_projection) +
            steps * real(k[2]) * (head + value));
  }
  const Dims& input(int slot) const {
    return graph_.tensor(node_.inputs[static_cast<std::size_t>(slot)]).dims;
  }
  const Dims& output(int slot) const {
    return graph_.tensor(node_.outputs[static_cast<std::size_t>(slot)]).dims;
  }
  double corners(int x) const { return static_cast<double>(1 << (input(x).rank() - 2)); }
  static double count(const Dims& dims) { return static_cast<double>(element_count(dims)); }
  // Each element of y takes one multiply-add per weight of its output channel.
  static double conv(const Dims& y, const Dims& w) {
    return w[0] == 0 ? 0 : 2 * count(y) * count(w) / static_cast<double>(w[0]);
  }
  // Each weight takes one multiply-add per step of a sequence.
  double recurrent(const Dims& weights) const {
    double rows = 2;
    for (int axis = 0; axis + 1 < input(0).rank(); ++axis)
      rows *= static_cast<double>(input(0)[axis]);
    return rows * count(weights);
  }
  static double attention(const Dims& q, const Dims& k, const Dims& v, double products_d,
                          double products_dv) {
    const double scores = static_cast<double>(q[0] * q[1] * q[2]) * static_cast<double>(k[2]);
  static double attention(const AttentionAttributes& op, const Dims& q, const Dims& k,
                          const Dims& v, double products_d, double products_dv) {
    const double scores = static_cast<double>(q[0] * q[1] * q[2]) *
                          static_cast<double>(op.max_seq_len_kv.value_or(k[2]));
    return 2 * scores *
           (products_d * static_cast<double>(q[3]) + products_dv * static_cast<double>(v[3]));
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

Timing measure(const std::function<void()>& run, double budget, std::int64_t least) {
  run();
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  while (std::cmp_less(seconds.size(), least) || seconds_since(start) < budget) {
    const Clock::time_point before = Clock::now();
    run();
    seconds.push_back(seconds_since(before));
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), static_cast<std::int64_t>(seconds.size())};
}

double operation_count(const Graph& graph) {
  double total = 0;
  for (const Node& node : graph.nodes())
    total += std::visit(OperationCounter(graph, node), node.op);
  return total;
}

double traffic_bytes(const Graph& graph) {
  double total = 0;
  for (const TensorId id : graph.bound_tensors())
    total += static_cast<double>(byte_size(graph.tensor(id)));
  return total;
}

std::string describe(const Timing& timing, const Graph& graph) {
  return fmt::format(
      "median {}, minimum {} of {} {}; {:.3g} GFLOP/s, {:.3g} GB/s", duration_text(timing.median),
      duration_text(timing.minimum), timing.runs, timing.runs == 1 ? "run" : "runs",
      operation_count(graph) / timing.median / 1e9, traffic_bytes(graph) / timing.median / 1e9);
}

}  // namespace ashlar::cli
