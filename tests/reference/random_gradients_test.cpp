// gradients() of random graphs of differentiable operations against central differences.
#include <cstdlib>
#include <random>

#include "reference/differences.hpp"

namespace ashlar::reference {
namespace {

using M = PointwiseMode;

// A chain of operations on tensors [N, C, H, W] whose values stay moderate. The same seed gives the
// same function.
class FunctionMaker {
 public:
  FunctionMaker(Graph& graph, std::uint64_t seed) : graph_(graph), random_(seed) {}

  Function make() {
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) new_input(random_dims());
    const int operations = 1 + below(7);
    for (int i = 0; i < operations; ++i) add_operation();
    return {values_.back(), wrt_};
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  bool chance(int percent) { return below(100) < percent; }
  Dims random_dims() { return {1 + below(2), 1 + below(4), 1 + below(4), 1 + below(5)}; }
  Value new_input(const Dims& dims) {
    const Layout layout = chance(25) ? channels_last : row_major;
    values_.push_back(graph_.input("x" + std::to_string(wrt_.size()), dims, f64, layout));
    wrt_.push_back(values_.back());
    return values_.back();
  }
  Value any() { return values_[static_cast<std::size_t>(below(static_cast<int>(values_.size())))]; }
  // A value whose dims broadcast with those of `x`.
  Value partner(Value x) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Value candidate = any();
      bool fits = true;
      for (int axis = 0; axis < 4; ++axis) {
        const std::int64_t a = x.dims()[axis], b = candidate.dims()[axis];
        fits = fits && (a == b || a == 1 || b == 1);
      }
      if (fits) return candidate;
    }
    Dims dims = x.dims();
    for (int axis = 0; axis < 4; ++axis)
      if (chance(40)) dims[axis] = 1;
    return new_input(dims);
  }
  void keep(Value y) { values_.push_back(y); }
  Value squashed(Value x) { return tanh(x); }  // in (-1, 1)

  void add_operation() {
    switch (below(14)) {
      case 0:
      case 1:
      case 2: return add_unary();
      case 3:
      case 4: return add_binary();
      case 5: return add_matmul();
      case 6: return add_convolution();
      case 7: return add_pooling();
      case 8: return add_norm();
      case 9: return add_softmax();
      case 10: return add_reduction();
      case 11: return add_movement();
      case 12: return add_attention();
      default: return add_select();
    }
  }

  void add_unary() {
    constexpr M kModes[] = {M::abs,       M::cos,     M::exp,          M::neg,
                            M::sin,       M::erf,     M::identity,     M::relu_fwd,
                            M::tanh_fwd,  M::elu_fwd, M::sigmoid_fwd,  M::gelu_fwd,
                            M::swish_fwd, M::floor,   M::softplus_fwd, M::gelu_approx_tanh_fwd,
                            M::sqrt,      M::rsqrt,   M::log,          M::reciprocal,
                            M::tan};
    const M mode = kModes[below(static_cast<int>(std::size(kModes)))];
    Value x = squashed(any());
    const bool positive =
        mode == M::sqrt || mode == M::rsqrt || mode == M::log || mode == M::reciprocal;
    if (positive) x = x + 1.5;
    const double factor = positive ? 1.0 + 0.25 * below(3) : 0.5 * (below(5) - 2);
    keep(graph_.pointwise(mode, std::array{x}, {.alpha1 = factor == 0 ? 1.0 : factor}));
  }

  void add_binary() {
    constexpr M kModes[] = {M::add, M::sub,        M::mul, M::div,  M::min,
                            M::max, M::add_square, M::pow, M::atan2};
    const M mode = kModes[below(static_cast<int>(std::size(kModes)))];
    Value x = any(), b = partner(x);
    if (mode == M::div || mode == M::atan2) b = squashed(b) + 1.5;
    if (mode == M::pow) {
      x = squashed(x) + 1.5;
      b = squashed(b);
    }
    keep(graph_.pointwise(mode, std::array{x, b}, {.alpha2 = chance(30) ? 0.5 : 1.0}));
  }

  void add_matmul() {
    const Value a = squashed(any());
    Dims dims = a.dims();
    dims[2] = a.dims()[3];
    dims[3] = 1 + below(4);
    for (const int axis : {0, 1})
      if (chance(50)) dims[axis] = 1;
    const Value b = new_input(dims);
    keep(graph_.matmul(a, b));
  }

  void add_convolution() {
    const Value x = squashed(any());
    const std::int64_t channels = x.dims()[1];
    const std::int64_t groups = chance(30) ? channels : 1;
    const Value w = new_input({groups * (1 + below(2)), channels / groups, 1 + below(2), 2});
    keep(graph_.conv(x, w, {.padding = {1, 1}, .stride = {1 + below(2), 1}}));
  }

  void add_pooling() {
    const ResampleMode mode = chance(50)   ? ResampleMode::maxpool
                              : chance(50) ? ResampleMode::avgpool_exclude_padding
                                           : ResampleMode::avgpool_include_padding;
    keep(graph_.resample(
        any(), {.mode = mode, .window = {2, 2}, .stride = {1, 1 + below(2)}, .padding = {1, 1}}));
  }

  void add_norm() {
    const Value x = any();
    Dims parameters = {1, 1, 1, x.dims()[3]};
    NormForward op{.mode = chance(50) ? NormMode::layer : NormMode::rms, .epsilon = 0.25};
    op.axes = {3};
    if (chance(40)) {
      op = {.mode = chance(50) ? NormMode::batch : NormMode::instance, .epsilon = 0.25};
      parameters = {1, x.dims()[1], 1, 1};
    }
    const Value scale = new_input(parameters), bias = new_input(parameters);
    keep(graph_.norm(x, op, {.scale = scale, .bias = bias}).y);
  }

  void add_softmax() { keep(graph_.softmax(any(), {.axis = below(4), .log = chance(30)})); }

  void add_reduction() {
    constexpr ReductionMode kModes[] = {ReductionMode::add, ReductionMode::avg, ReductionMode::max,
                                        ReductionMode::min, ReductionMode::norm2};
    keep(graph_.reduce(any(), kModes[below(5)], {below(4)}));
  }

  void add_movement() {
    const Value x = any();
    switch (below(4)) {
      case 0: return keep(graph_.transpose(x, {0, 2, 3, 1}));
      case 1: return keep(graph_.concat(std::array{x, squashed(x)}, below(4)));
      case 2: return keep(graph_.reshape(x, {1, 1, -1, x.dims()[3]}));
      default: {
        Dims start = Dims::filled(4, 0), limit = x.dims(), step = Dims::filled(4, 1);
        const int axis = below(4);
        start[axis] = below(static_cast<int>(x.dims()[axis]));
        step[axis] = 1 + below(2);
        return keep(graph_.slice(x, start, limit, step));
      }
    }
  }

  void add_attention() {
    const Value q = squashed(any());
    Dims keys = q.dims();
    keys[2] = 1 + below(4);
    const Value k = new_input(keys), v = new_input(keys);
    AttentionAttributes op;
    if (chance(30)) op.right_bound = below(2);
    keep(graph_.attention(q, k, v, op).first);
  }

  void add_select() {
    const Value x = any(), b = partner(x);
    keep(select(graph_.pointwise(M::cmp_gt, std::array{x, b}), x * 2.0, b));
  }

  Graph& graph_;
  std::mt19937_64 random_;
  std::vector<Value> values_, wrt_;
};

TEST(RandomGradients, MatchDifferences) {
  const bool is_long = std::getenv("ASHLAR_TEST_LONG") != nullptr;
  const std::uint64_t graphs = is_long ? 20000 : 2000;
  int compared = 0, undecided = 0, failures = 0;
  for (std::uint64_t seed = 1; seed <= graphs && failures < 5; ++seed) {
    const DifferenceReport report =
        compare_with_differences([&](Graph& g) { return FunctionMaker(g, seed).make(); }, seed);
    compared += report.compared;
    undecided += report.undecided;
    if (report.wrong.empty()) continue;
    ++failures;
    Graph g;
    FunctionMaker(g, seed).make();
    ADD_FAILURE() << "seed " << seed << ": " << report.wrong << g.to_text();
  }
  EXPECT_LT(undecided, compared / 20);
  std::printf("summary: gradients of %d random graphs, %d derivatives, %d near a kink\n",
              static_cast<int>(graphs), compared, undecided);
}

}  // namespace
}  // namespace ashlar::reference
