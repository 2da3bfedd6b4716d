// The gradients of mixtures of experts, causal convolution and dropout against central differences.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

class MoeGradients : public testing::TestWithParam<MoeMode> {};

TEST_P(MoeGradients, MatchFiniteDifferences) {
  using Forward = MoeGroupedMatmul;
  using Backward = MoeGroupedMatmulBackward;
  const MoeMode mode = GetParam();
  const std::int64_t rows = mode == MoeMode::gather ? 7 : 5;
  Forward op;
  op.mode = mode;
  op.top_k = 2;
  Backward gradient;
  gradient.mode = mode;
  gradient.top_k = 2;
  // Two groups per expert, and a row without an expert.
  const auto routing = [&]<class Op>(Graph& g, std::vector<Operand<Op>>& operands) {
    operands.push_back({Op::first_token_offset, g.input("first", {4, 1, 1}, i32)});
    if (mode != MoeMode::none)
      operands.push_back({Op::token_index, g.input("index", {1, rows, 1}, i32)});
    if (mode == MoeMode::scatter)
      operands.push_back({Op::token_ks, g.input("ks", {1, rows, 1}, i32)});
  };
  Graph f, b;
  std::vector<Operand<Forward>> operands = {{Forward::token, f.input("token", {1, 5, 3}, f64)},
                                            {Forward::weight, f.input("weight", {2, 3, 4}, f64)}};
  routing(f, operands);
  const std::vector<Wanted<Forward>> output = {Forward::output};
  const Value y = f.apply(op, operands, output);
  f.output("y", y);
  std::vector<Operand<Backward>> backward_operands = {
      {Backward::doutput, b.input("dy", y.dims(), f64)},
      {Backward::token, b.input("token", {1, 5, 3}, f64)},
      {Backward::weight, b.input("weight", {2, 3, 4}, f64)}};
  routing(b, backward_operands);
  const std::vector<Wanted<Backward>> both = {Backward::dweight, Backward::dtoken};
  const auto gradients = b.apply(gradient, backward_operands, both);
  b.output("dweight", gradients[Backward::dweight]);
  b.output("dtoken", gradients[Backward::dtoken]);
  Evaluation forward(f), backward(b);
  forward.fill_inputs(1);
  forward.set("first", {1, 2, 3, 4});
  if (mode == MoeMode::gather) forward.set("index", {0, 3, 3, -1, 1, 3, 9});
  if (mode == MoeMode::scatter) {
    forward.set("index", {0, 1, 1, 0, 0});
    forward.set("ks", {1, 0, 1, 1, 0});
  }
  expect_gradients(forward, "y", backward, {"token", "weight"});
}

INSTANTIATE_TEST_SUITE_P(Modes, MoeGradients,
                         testing::Values(MoeMode::none, MoeMode::gather, MoeMode::scatter));

class CausalConvGradients : public testing::TestWithParam<std::tuple<CausalConvActivation, int>> {};

TEST_P(CausalConvGradients, MatchFiniteDifferences) {
  using Forward = CausalConvForward;
  using Backward = CausalConvBackward;
  const auto [activation, steps] = GetParam();
  Forward op;
  op.activation = activation;
  Backward gradient;
  gradient.activation = activation;
  const Dims x = {2, 3, steps}, w = {3, 4}, bias = {3}, state = {2, 3, 3};
  Graph f, b;
  f.output("y", f.apply(op,
                        {{Forward::x, f.input("x", x, f64)},
                         {Forward::w, f.input("w", w, f64)},
                         {Forward::bias, f.input("bias", bias, f64)},
                         {Forward::initial_state, f.input("state", state, f64)}},
                        {Forward::y}));
  const auto gradients =
      b.apply(gradient,
              {{Backward::x, b.input("x", x, f64)},
               {Backward::w, b.input("w", w, f64)},
               {Backward::dy, b.input("dy", x, f64)},
               {Backward::bias, b.input("bias", bias, f64)},
               {Backward::initial_state, b.input("state", state, f64)}},
              {Backward::dx, Backward::dw, Backward::dbias, Backward::dinitial_state});
  const char* names[] = {"dx", "dw", "dbias", "dstate"};
  for (std::size_t i = 0; i < 4; ++i) b.output(names[i], gradients.all()[i]);
  Evaluation forward(f), backward(b);
  forward.fill_inputs(3);
  expect_gradients(forward, "y", backward, {"x", "w", "bias", "state"});
}

INSTANTIATE_TEST_SUITE_P(All, CausalConvGradients,
                         testing::Combine(testing::Values(CausalConvActivation::identity,
                                                          CausalConvActivation::silu),
                                          testing::Values(2, 7)));

TEST(DropoutGradient, MatchesFiniteDifferences) {
  using Forward = DropoutForward;
  using Backward = DropoutBackward;
  for (bool given : {false, true}) {
    Forward op;
    op.probability = 0.4;
    op.seed = 5;
    Backward gradient;
    gradient.probability = 0.4;
    gradient.seed = 5;
    Graph f, b;
    const auto results =
        f.apply(op, {{Forward::x, f.input("x", {4, 9}, f64)}}, {Forward::y, Forward::mask});
    f.output("y", results[Forward::y]);
    f.output("mask", results[Forward::mask]);
    const Value mask = given ? b.input("mask", {4, 9}, boolean) : Value();
    b.output("dx",
             b.apply(gradient, {{Backward::dy, b.input("dy", {4, 9}, f64)}, {Backward::mask, mask}},
                     {Backward::dx}));
    Evaluation forward(f), backward(b);
    forward.fill_inputs(8);
    expect_gradients(forward, "y", backward, {"x"});
  }
}

}  // namespace
}  // namespace ashlar::reference
