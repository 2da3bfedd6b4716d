// The gradients of cross-entropy and rotary position embedding against central differences.
#include "reference/differences.hpp"

namespace ashlar::reference::language_model {
namespace {

class CrossEntropyGradients : public testing::TestWithParam<std::tuple<double, bool>> {};

TEST_P(CrossEntropyGradients, MatchFiniteDifferences) {
  using Forward = CrossEntropyForward;
  using Backward = CrossEntropyBackward;
  const auto [smoothing, mean] = GetParam();
  Forward op;
  Backward gradient;
  op.label_smoothing = gradient.label_smoothing = smoothing;
  op.mean = gradient.mean = mean;
  Graph f, b;
  const auto results = f.apply(
      op,
      {{Forward::x, f.input("x", {4, 5}, f64)}, {Forward::target, f.input("target", {4, 1}, i32)}},
      {Forward::loss, Forward::stats});
  const Value loss = results[Forward::loss];
  f.output("loss", loss);
  f.output("stats", results[Forward::stats]);
  b.output("dx", b.apply(gradient,
                         {{Backward::x, b.input("x", {4, 5}, f64)},
                          {Backward::target, b.input("target", {4, 1}, i32)},
                          {Backward::stats, b.input("stats", {4, 1}, f64)},
                          {Backward::dloss, b.input("dloss", loss.dims(), f64)}},
                         {Backward::dx}));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(5);
  forward.set("target", {3, -100, 0, 4});
  expect_gradients(forward, "loss", backward, {"x"}, "dloss");
}

INSTANTIATE_TEST_SUITE_P(All, CrossEntropyGradients,
                         testing::Combine(testing::Values(0.0, 0.2), testing::Bool()));

// gradients() of the loss and of stats, a z-loss.
TEST_P(CrossEntropyGradients, FollowFromTheGraph) {
  using Op = CrossEntropyForward;
  const auto [smoothing, mean] = GetParam();
  Op op;
  op.label_smoothing = smoothing;
  op.mean = mean;
  const auto set_targets = [](Evaluation& e) { e.set("target", {3, -100, 0, 4}); };
  for (const bool with_stats : {false, true})
    expect_matching_gradients(
        [&](Graph& g) {
          const Value x = g.input("x", {4, 5}, f64), target = g.input("target", {4, 1}, i64);
          const auto out = g.apply(op, {{Op::x, x}, {Op::target, target}}, {Op::loss, Op::stats});
          const Value loss = out[Op::loss], stats = out[Op::stats];
          return Function{with_stats ? loss + stats * stats : loss, {x}};
        },
        -1.0, 1.0, set_targets);
}

class RopeGradients : public testing::TestWithParam<std::tuple<RopePairs, bool>> {};

TEST_P(RopeGradients, MatchFiniteDifferences) {
  const auto [pairs, inverse] = GetParam();
  Rope op;
  op.pairs = pairs;
  op.width = 6;
  op.base = 10;
  op.factor = 2;
  op.original_length = 16;
  op.inverse = inverse;
  Rope gradient = op;
  gradient.inverse = !inverse;
  const Dims x = {1, 2, 3, 8};
  Graph f, b;
  f.output("y", f.apply(op, {{Rope::x, f.input("x", x, f64)}}, {Rope::y}));
  b.output("dx", b.apply(gradient, {{Rope::x, b.input("dy", x, f64)}}, {Rope::y}));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(6);
  expect_gradients(forward, "y", backward, {"x"});
}

TEST_P(RopeGradients, FollowFromTheGraph) {
  const auto [pairs, inverse] = GetParam();
  Rope op;
  op.pairs = pairs;
  op.inverse = inverse;
  op.factor = 2;
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 2, 3, 4}, f64), at = g.input("positions", {2, 3}, i32);
    const Value y = g.apply(op, {{Rope::x, x}, {Rope::positions, at}}, {Rope::y});
    return Function{y, {x}};
  });
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 2, 3, 4}, f64), cos = g.input("cos", {1, 1, 3, 2}, f64),
                sin = g.input("sin", {1, 1, 3, 2}, f64);
    Rope rotation;
    rotation.pairs = pairs;
    rotation.inverse = inverse;
    const Value y =
        g.apply(rotation, {{Rope::x, x}, {Rope::cos, cos}, {Rope::sin, sin}}, {Rope::y});
    return Function{y, {x}};
  });
}

INSTANTIATE_TEST_SUITE_P(All, RopeGradients,
                         testing::Combine(testing::Values(RopePairs::half, RopePairs::interleaved),
                                          testing::Bool()));

}  // namespace
}  // namespace ashlar::reference::language_model
