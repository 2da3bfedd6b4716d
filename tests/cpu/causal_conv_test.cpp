// Causal convolution on long sequences, both layouts, many taps.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

void check(const Dims& x, std::int64_t taps, CausalConvActivation activation, DType dtype,
           const Layout& layout) {
  const Dims w = {x[1], taps}, bias = {x[1]}, state = {x[0], x[1], taps - 1};
  SCOPED_TRACE(testing::Message() << to_string(x) << ", " << taps << " taps, " << to_string(dtype));
  {
    using Op = CausalConvForward;
    Graph g;
    Op op;
    op.activation = activation;
    const auto results = g.apply(op,
                                 {{Op::x, g.input("x", x, dtype, layout)},
                                  {Op::w, g.input("w", w, dtype)},
                                  {Op::bias, g.input("bias", bias, dtype)},
                                  {Op::initial_state, g.input("state", state, dtype)}},
                                 {Op::y, Op::final_state});
    g.output("y", results[Op::y]);
    g.output("final", results[Op::final_state]);
    PlanCheck plan(std::move(g));
    plan.expect_agrees("cpu.causal_conv");
  }
  using Op = CausalConvBackward;
  Graph g;
  Op op;
  op.activation = activation;
  const auto results = g.apply(op,
                               {{Op::x, g.input("x", x, dtype, layout)},
                                {Op::w, g.input("w", w, dtype)},
                                {Op::dy, g.input("dy", x, dtype, layout)},
                                {Op::bias, g.input("bias", bias, dtype)},
                                {Op::initial_state, g.input("state", state, dtype)}},
                               {Op::dx, Op::dw, Op::dbias, Op::dinitial_state});
  const char* names[] = {"dx", "dw", "dbias", "dstate"};
  for (std::size_t i = 0; i < 4; ++i) g.output(names[i], results.all()[i]);
  PlanCheck plan(std::move(g));
  plan.expect_agrees("cpu.causal_conv");
}

TEST(CausalConv, LongSequences) {
  check({1, 2, 9001}, 4, CausalConvActivation::silu, f32, row_major);
  check({1, 3, 4097}, 3, CausalConvActivation::identity, f64, row_major);
}

TEST(CausalConv, ChannelsFastest) {
  check({2, 130, 150}, 4, CausalConvActivation::silu, f32, channels_last);
  check({1, 65, 90}, 2, CausalConvActivation::identity, bf16, channels_last);
}

TEST(CausalConv, ManyTaps) {
  for (const Layout& layout : {row_major, channels_last}) {
    check({2, 70, 100}, 32, CausalConvActivation::silu, f32, layout);
    check({1, 5, 4200}, 31, CausalConvActivation::identity, f32, layout);
  }
}

}  // namespace
}  // namespace ashlar::cpu
