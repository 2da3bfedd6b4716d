// Batch norm in separate operations, local norms, adaptive layer norm and reduction indices, on
// values small enough to verify manually.
#include <cmath>

#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

const Dims kChannels = {1, 2, 1};

TEST(HandStatistics, GenStats) {
  Graph g;
  const auto r = g.apply(GenStats{}, {{GenStats::x, g.input("x", {2, 2, 2}, f32)}},
                         {GenStats::sum, GenStats::sq_sum});
  g.output("sum", r[GenStats::sum]);
  g.output("sq_sum", r[GenStats::sq_sum]);
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6, -7, 8});
  expect_result(e, "sum", {1 + 2 + 5 + 6, 3 + 4 - 7 + 8});
  expect_result(e, "sq_sum", {1 + 4 + 25 + 36, 9 + 16 + 49 + 64});
}

TEST(HandStatistics, BnFinalizeInTraining) {
  using Bn = BnFinalize;
  for (bool tensors : {false, true}) {
    Graph g;
    const auto channels = [&](const char* name) { return g.input(name, kChannels, f32); };
    std::vector<Operand<Bn>> operands = {
        {Bn::sum, channels("sum")},           {Bn::sq_sum, channels("sq_sum")},
        {Bn::scale, channels("scale")},       {Bn::bias, channels("bias")},
        {Bn::running_mean, channels("mean")}, {Bn::running_var, channels("var")}};
    if (tensors) {
      operands.push_back({Bn::epsilon_tensor, g.scalar("epsilon", f32, 3)});
      operands.push_back({Bn::momentum_tensor, g.scalar("momentum", f32, 3)});
      operands.push_back({Bn::count_tensor, g.scalar("count", i64, 3)});
    }
    const Bn op = tensors ? Bn{.epsilon = 9.0, .momentum = 0.75, .count = 17}
                          : Bn{.epsilon = 0.0, .momentum = 0.5, .count = 4};
    const std::vector<Wanted<Bn>> wanted = {Bn::eq_scale,          Bn::eq_bias,
                                            Bn::saved_mean,        Bn::saved_inv_variance,
                                            Bn::next_running_mean, Bn::next_running_var};
    const auto r = g.apply(op, operands, wanted);
    const char* names[] = {"eq_scale", "eq_bias", "saved_mean", "inv", "next_mean", "next_var"};
    for (std::size_t slot = 0; slot < r.all().size(); ++slot) g.output(names[slot], r.all()[slot]);
    Evaluation e(g);
    // Means 2 and -1, variances 32 / 4 - 2^2 = 4 and 8 / 4 - 1 = 1.
    e.set("sum", {8, -4});
    e.set("sq_sum", {32, 8});
    e.set("scale", {6, 3});
    e.set("bias", {1, 1});
    e.set("mean", {0, 1});
    e.set("var", {1, 2});
    if (tensors) {
      e.set("epsilon", {0});
      e.set("momentum", {0.5});
      e.set("count", {4});
    }
    constexpr double kClose = 1e-6;
    expect_result(e, "saved_mean", {2, -1});
    expect_result(e, "inv", {0.5, 1}, kClose);
    expect_result(e, "eq_scale", {3, 3}, kClose);
    expect_result(e, "eq_bias", {1 - 2 * 3, 1 + 3}, kClose);
    expect_result(e, "next_mean", {1, 0}, kClose);
    // Unbiased: 4 / 3 of the variance.
    expect_result(e, "next_var", {0.5 + 0.5 * 16.0 / 3, 1 + 0.5 * 4.0 / 3}, kClose);
  }
}

TEST(HandStatistics, BnFinalizeOfRoundedAwayVariance) {
  using Bn = BnFinalize;
  Graph g;
  const auto channels = [&](const char* name) { return g.input(name, {1, 1}, f64); };
  const auto r = g.apply(Bn{.epsilon = 0.25, .count = 1},
                         {{Bn::sum, channels("sum")},
                          {Bn::sq_sum, channels("sq_sum")},
                          {Bn::scale, channels("scale")},
                          {Bn::bias, channels("bias")}},
                         {Bn::eq_scale, Bn::eq_bias});
  g.output("eq_scale", r[Bn::eq_scale]);
  g.output("eq_bias", r[Bn::eq_bias]);
  Evaluation e(g);
  e.set("sum", {3});
  e.set("sq_sum", {8});  // below 3^2: counts as a variance of 0
  e.set("scale", {1});
  e.set("bias", {0});
  expect_result(e, "eq_scale", {2}, 1e-12);
  expect_result(e, "eq_bias", {-6}, 1e-12);
}

TEST(HandStatistics, BnFinalizeInInference) {
  using Bn = BnFinalize;
  Graph g;
  const auto channels = [&](const char* name) { return g.input(name, kChannels, f32); };
  const auto r = g.apply(Bn{.phase = NormPhase::inference, .epsilon = 1.0},
                         {{Bn::scale, channels("scale")},
                          {Bn::bias, channels("bias")},
                          {Bn::running_mean, channels("mean")},
                          {Bn::running_var, channels("var")}},
                         {Bn::eq_scale, Bn::eq_bias, Bn::saved_mean});
  g.output("eq_scale", r[Bn::eq_scale]);
  g.output("eq_bias", r[Bn::eq_bias]);
  g.output("saved_mean", r[Bn::saved_mean]);
  Evaluation e(g);
  e.set("scale", {6, 2});
  e.set("bias", {1, 2});
  e.set("mean", {3, 4});
  e.set("var", {3, 0});
  expect_result(e, "eq_scale", {3, 2}, 1e-6);
  expect_result(e, "eq_bias", {1 - 9, 2 - 8}, 1e-5);
  expect_result(e, "saved_mean", {3, 4});
}

TEST(HandStatistics, BnBackwardWeights) {
  using Bn = BnBackwardWeights;
  Graph g;
  const auto channels = [&](const char* name) { return g.input(name, {1, 1, 1}, f32); };
  const auto r = g.apply(Bn{},
                         {{Bn::x, g.input("x", {2, 1, 2}, f32)},
                          {Bn::dy, g.input("dy", {2, 1, 2}, f32)},
                          {Bn::mean, channels("mean")},
                          {Bn::inv_variance, channels("inv")},
                          {Bn::scale, channels("scale")}},
                         {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias});
  const char* names[] = {"dscale", "dbias", "eq_dy", "eq_x", "eq_bias"};
  for (std::size_t slot = 0; slot < r.all().size(); ++slot) g.output(names[slot], r.all()[slot]);
  Evaluation e(g);
  e.set("x", {1, 2, 3, 6});
  e.set("dy", {1, -1, 2, 4});
  e.set("mean", {3});
  e.set("inv", {0.5});
  e.set("scale", {2});
  // x_hat = -1, -0.5, 0, 1.5
  expect_result(e, "dscale", {-1 + 0.5 + 0 + 6});
  expect_result(e, "dbias", {6});
  expect_result(e, "eq_dy", {1});
  expect_result(e, "eq_x", {-0.5 * 5.5 / 4}, 1e-6);
  expect_result(e, "eq_bias", {-6.0 / 4 + 3 * 0.5 * 5.5 / 4}, 1e-6);
}

TEST(HandStatistics, LrnWindowIsAsymmetricForEvenSizes) {
  Graph g;
  const Value x = g.input("x", {1, 4, 1}, f64), dy = g.input("dy", {1, 4, 1}, f64);
  // s = 1 + the squares of the channel itself and of the next one.
  const LocalNormAttributes pairs{.window = 2, .alpha = 2.0, .beta = 1.0, .k = 1.0};
  g.output("y", g.apply(LrnForward{pairs}, {{LrnForward::x, x}}, {LrnForward::y}));
  g.output("dx", g.apply(LrnBackward{pairs}, {{LrnBackward::x, x}, {LrnBackward::dy, dy}},
                         {LrnBackward::dx}));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4});
  e.set("dy", {0, 1, 0, 0});
  expect_result(e, "y", {1.0 / 6, 2.0 / 14, 3.0 / 26, 4.0 / 17}, 1e-12);
  // Only y(1) = x(1) / (1 + x(1)^2 + x(2)^2) counts.
  expect_result(e, "dx", {0, 1.0 / 14 - 2 * 4.0 / 196, -2 * 3 * 2.0 / 196, 0}, 1e-12);
}

TEST(HandStatistics, DivisiveNorm) {
  Graph g;
  const Dims dims = {1, 1, 2, 2};
  const Value x = g.input("x", dims, f64), means = g.input("means", dims, f64);
  const LocalNormAttributes square{.window = 3, .alpha = 9.0, .beta = 0.5, .k = 0.0};
  g.output("plain", g.apply(DivisiveNormForward{square}, {{DivisiveNormForward::x, x}},
                            {DivisiveNormForward::y}));
  g.output("centred", g.apply(DivisiveNormForward{square},
                              {{DivisiveNormForward::x, x}, {DivisiveNormForward::means, means}},
                              {DivisiveNormForward::y}));
  const auto r = g.apply(DivisiveNormBackward{square},
                         {{DivisiveNormBackward::x, x},
                          {DivisiveNormBackward::dy, g.input("dy", dims, f64)},
                          {DivisiveNormBackward::means, means}},
                         {DivisiveNormBackward::dx, DivisiveNormBackward::dmeans});
  g.output("dx", r[DivisiveNormBackward::dx]);
  g.output("dmeans", r[DivisiveNormBackward::dmeans]);
  Evaluation e(g);
  e.set("x", {1, 1, 3, 5});
  e.set("means", {1, 1, 3, 3});
  e.set("dy", {1, 0, 0, 0});
  // Every window sees all four.
  expect_result(e, "plain", {1 / 6.0, 1 / 6.0, 3 / 6.0, 5 / 6.0}, 1e-12);
  // All four less the mean at the centre: 0, 0, 2, 4 or -2, -2, 0, 2.
  const double low = std::sqrt(20.0), high = std::sqrt(12.0);
  expect_result(e, "centred", {1 / low, 1 / low, 3 / high, 5 / high}, 1e-12);
  // y(0) = x(0) ((x(0) - mean(0))^2 + ... + (x(3) - mean(0))^2)^-1/2
  const double slope = 1.0 / (20.0 * low);
  expect_result(e, "dmeans", {(0 + 0 + 2 + 4) * slope, 0, 0, 0}, 1e-12);
  expect_result(e, "dx", {1 / low, 0, -2 * slope, -4 * slope}, 1e-12);
}

TEST(HandStatistics, IndexOfMinMaxAmax) {
  Graph g;
  const Value x = g.input("x", {2, 2, 3}, f32);
  const auto pick = [&](const char* name, ReductionMode mode, const Dims& axes) {
    const auto r = g.apply(Reduction{.mode = mode, .axes = axes}, {{Reduction::x, x}},
                           {Reduction::y, Reduction::index});
    g.output(name, r[Reduction::y]);
    g.output(std::string(name) + "_at", r[Reduction::index]);
  };
  pick("max", ReductionMode::max, {2});
  pick("min", ReductionMode::min, {0, 2});
  pick("amax", ReductionMode::amax, {});
  Evaluation e(g);
  e.set("x", {1, 4, 4, -2, 0, -7, 3, 2, 1, -7, 7, 5});
  expect_result(e, "max", {4, 0, 3, 7});
  expect_result(e, "max_at", {1, 1, 0, 1});
  expect_result(e, "min", {1, -7});
  expect_result(e, "min_at", {0, 2});  // among 2 x 3: the first of equals
  expect_result(e, "amax", {7});
  expect_result(e, "amax_at", {5});
}

TEST(HandStatistics, IndexOfTheFirstNaN) {
  for (ReductionMode mode : {ReductionMode::min, ReductionMode::max, ReductionMode::amax}) {
    Graph g;
    const auto r = g.apply(Reduction{.mode = mode}, {{Reduction::x, g.input("x", {5}, f32)}},
                           {Reduction::y, {Reduction::index, i64}});
    g.output("y", r[Reduction::y]);
    g.output("at", r[Reduction::index]);
    Evaluation e(g);
    e.set("x", {1, -9, kNaN, 9, kNaN});
    expect_result(e, "at", {2});
    expect_result(e, "y", {kNaN});
  }
}

TEST(HandStatistics, IndexOfEmptyReduction) {
  Graph g;
  const auto r =
      g.apply(Reduction{.mode = ReductionMode::max, .axes = {1}},
              {{Reduction::x, g.input("x", {2, 0}, f32)}}, {Reduction::y, Reduction::index});
  g.output("y", r[Reduction::y]);
  g.output("at", r[Reduction::index]);
  Evaluation e(g);
  expect_result(e, "y", {-kInf, -kInf});
  expect_result(e, "at", {-1, -1});
}

TEST(HandStatistics, AdaptiveLayerNorm) {
  Graph g;
  NormForward norm;
  norm.mode = NormMode::ada_layer;
  norm.epsilon = 0.0;
  const NormResults r =
      g.norm(g.input("x", {2, 1, 2}, f64), norm,
             {.scale = g.input("scale", {2, 1, 2}, f64), .bias = g.input("bias", {2, 1, 2}, f64)});
  g.output("y", r.y);
  g.output("mean", r.mean);
  Evaluation e(g);
  e.set("x", {1, 3, 10, 20});
  e.set("scale", {1, 2, 3, 4});
  e.set("bias", {0, 0, 10, 10});
  expect_result(e, "mean", {2, 15});
  expect_result(e, "y", {-1, 2, 7, 14}, 1e-12);
}

TEST(HandStatistics, MomentumFromATensor) {
  using N = NormForward;
  Graph g;
  const Dims channel = {1, 1};
  const auto r = g.apply(N{.mode = NormMode::batch, .momentum = 0.9},
                         {{N::x, g.input("x", {2, 1}, f32)},
                          {N::running_mean, g.input("mean", channel, f32)},
                          {N::running_var, g.input("var", channel, f32)},
                          {N::momentum_tensor, g.scalar("momentum", f32, 2)}},
                         {N::y, N::next_running_mean, N::next_running_var});
  g.output("y", r[N::y]);
  g.output("next_mean", r[N::next_running_mean]);
  g.output("next_var", r[N::next_running_var]);
  Evaluation e(g);
  e.set("x", {1, 3});
  e.set("mean", {4});
  e.set("var", {6});
  e.set("momentum", {0.25});
  expect_result(e, "next_mean", {0.75 * 4 + 0.25 * 2}, 1e-6);
  expect_result(e, "next_var", {0.75 * 6 + 0.25 * 2}, 1e-6);
}

}  // namespace
}  // namespace ashlar::reference
