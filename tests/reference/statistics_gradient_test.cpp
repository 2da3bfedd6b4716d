// The gradients of local norms and of split batch norm against central differences in f64.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

struct WindowCase {
  const char* name;
  Dims x;
  LocalNormAttributes attributes;
};

void PrintTo(const WindowCase& test, std::ostream* stream) { *stream << test.name; }

class LrnGradients : public testing::TestWithParam<WindowCase> {};

TEST_P(LrnGradients, MatchFiniteDifferences) {
  const auto& [name, dims, attributes] = GetParam();
  Graph f;
  f.output("y", f.apply(LrnForward{attributes}, {{LrnForward::x, f.input("x", dims, f64)}},
                        {LrnForward::y}));
  Graph b;
  b.output("dx", b.apply(LrnBackward{attributes},
                         {{LrnBackward::x, b.input("x", dims, f64)},
                          {LrnBackward::dy, b.input("dy", dims, f64)}},
                         {LrnBackward::dx}));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(21);
  expect_gradients(forward, "y", backward, {"x"});
}

const WindowCase kLrn[] = {
    {"usual", {2, 7, 3}, {.alpha = 1.0, .k = 1.0}},
    {"even", {1, 6, 2, 2}, {.window = 4, .alpha = 2.0, .beta = 0.5, .k = 0.5}},
    {"wide", {2, 3, 2}, {.window = 9, .alpha = 3.0, .beta = 1.25, .k = 1.0}}};
INSTANTIATE_TEST_SUITE_P(All, LrnGradients, testing::ValuesIn(kLrn),
                         [](const auto& param_info) { return param_info.param.name; });

class DivisiveGradients : public testing::TestWithParam<WindowCase> {};

TEST_P(DivisiveGradients, MatchFiniteDifferences) {
  const auto& [name, dims, attributes] = GetParam();
  using Forward = DivisiveNormForward;
  using Backward = DivisiveNormBackward;
  for (bool with_means : {false, true}) {
    SCOPED_TRACE(with_means ? "with means" : "without means");
    Graph f;
    const Value x = f.input("x", dims, f64);
    const Value means = with_means ? f.input("means", dims, f64) : Value();
    f.output("y", f.apply(Forward{attributes}, {{Forward::x, x}, {Forward::means, means}},
                          {Forward::y}));
    Graph b;
    std::vector<Operand<Backward>> operands = {{Backward::x, b.input("x", dims, f64)},
                                               {Backward::dy, b.input("dy", dims, f64)}};
    std::vector<Wanted<Backward>> wanted = {Backward::dx};
    std::vector<std::string> inputs = {"x"};
    if (with_means) {
      operands.push_back({Backward::means, b.input("means", dims, f64)});
      wanted.push_back(Backward::dmeans);
      inputs.push_back("means");
    }
    const auto r = b.apply(Backward{attributes}, operands, wanted);
    b.output("dx", r[Backward::dx]);
    if (with_means) b.output("dmeans", r[Backward::dmeans]);
    Evaluation forward(f), backward(b);
    forward.fill_inputs(22);
    expect_gradients(forward, "y", backward, inputs);
  }
}

const WindowCase kDivisive[] = {
    {"line", {2, 2, 7}, {.window = 3, .alpha = 1.0, .k = 1.0}},
    {"image", {1, 2, 4, 5}, {.window = 3, .alpha = 2.0, .beta = 0.5, .k = 0.5}},
    {"volume", {1, 1, 3, 2, 4}, {.window = 2, .alpha = 3.0, .beta = 1.25, .k = 1.0}}};
INSTANTIATE_TEST_SUITE_P(All, DivisiveGradients, testing::ValuesIn(kDivisive),
                         [](const auto& param_info) { return param_info.param.name; });

// The sums and the linear coefficients of dx against central differences of the whole batch norm.
TEST(BnBackwardWeightsGradients, MatchFiniteDifferences) {
  using Bn = BnBackwardWeights;
  const Dims dims = {3, 2, 4}, channels = {1, 2, 1};
  NormForward norm;
  norm.mode = NormMode::batch;
  norm.epsilon = 0.01;
  Graph f;
  const NormResults results =
      f.norm(f.input("x", dims, f64), norm,
             {.scale = f.input("scale", channels, f64), .bias = f.input("bias", channels, f64)});
  f.output("y", results.y);
  f.output("mean", results.mean);
  f.output("inv_variance", results.inv_variance);
  Graph b;
  const Value x = b.input("x", dims, f64), dy = b.input("dy", dims, f64);
  const auto r = b.apply(Bn{},
                         {{Bn::x, x},
                          {Bn::dy, dy},
                          {Bn::mean, b.input("mean", channels, f64)},
                          {Bn::inv_variance, b.input("inv_variance", channels, f64)},
                          {Bn::scale, b.input("scale", channels, f64)}},
                         {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias});
  b.output("dscale", r[Bn::dscale]);
  b.output("dbias", r[Bn::dbias]);
  b.output("dx", dy * r[Bn::eq_dy_scale] + x * r[Bn::eq_x_scale] + r[Bn::eq_bias]);
  Evaluation forward(f), backward(b);
  forward.fill_inputs(23);
  expect_gradients(forward, "y", backward, {"x", "scale", "bias"});
}

}  // namespace
}  // namespace ashlar::reference
