// Local response and divisive normalisation.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

template <class Forward, class Backward>
void check(const Dims& dims, const LocalNormAttributes& attributes, DType dtype,
           const Layout& layout) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " window " << attributes.window << " beta "
                                  << attributes.beta << " " << to_string(dtype));
  {
    Graph graph;
    const Value x = graph.input("x", dims, dtype, layout);
    graph.output("y", graph.apply(Forward{attributes}, {{Forward::x, x}}, {Forward::y}));
    PlanCheck plan(std::move(graph));
    plan.fill("x", -2.0, 2.0);
    plan.expect_agrees("cpu.local_norm");
  }
  Graph graph;
  const Value x = graph.input("x", dims, dtype, layout);
  const Value dy = graph.input("dy", dims, dtype, layout);
  graph.output("dx", graph.apply(Backward{attributes}, {{Backward::x, x}, {Backward::dy, dy}},
                                 {Backward::dx}));
  PlanCheck plan(std::move(graph));
  plan.fill("x", -2.0, 2.0);
  plan.expect_agrees("cpu.local_norm");
}

void check_lrn(const Dims& dims, const LocalNormAttributes& attributes, DType dtype = f32,
               const Layout& layout = row_major) {
  check<LrnForward, LrnBackward>(dims, attributes, dtype, layout);
}
void check_divisive(const Dims& dims, const LocalNormAttributes& attributes, DType dtype = f32,
                    const Layout& layout = row_major) {
  check<DivisiveNormForward, DivisiveNormBackward>(dims, attributes, dtype, layout);
}

TEST(LocalNorm, PowersAndLayouts) {
  for (const Layout& layout : {row_major, channels_last})
    for (double beta : {0.75, 0.5, 1.0, 0.6, 2.0}) {
      check_lrn({2, 19, 5, 6}, {.window = 5, .alpha = 1.0, .beta = beta, .k = 1.0}, f32, layout);
      check_divisive({2, 3, 9, 10}, {.window = 3, .alpha = 1.0, .beta = beta, .k = 1.0}, f32,
                     layout);
    }
}

TEST(LocalNorm, Dtypes) {
  for (DType dtype : kFloats) {
    check_lrn({1, 9, 35}, {.window = 4, .alpha = 0.5}, dtype);
    check_divisive({1, 2, 5, 17}, {.window = 4, .alpha = 0.5}, dtype, channels_last);
  }
}

TEST(LocalNorm, RowsLongerThanABuffer) {
  check_lrn({1, 3, 2500}, {.window = 3, .alpha = 1.0});
  check_lrn({1, 2600, 2}, {.window = 7, .alpha = 1.0}, f32, channels_last);
  check_divisive({1, 1, 2, 2500}, {.window = 9, .alpha = 1.0});
}

// Magnitudes beyond the range of the exp and log path.
TEST(LocalNorm, DivisorsOfAnySize) {
  Graph graph;
  const Value x = graph.input("x", {1, 6, 4}, f32);
  graph.output("y", graph.apply(LrnForward{{.window = 1, .alpha = 1.0, .beta = 1.7, .k = 0.0}},
                                {{LrnForward::x, x}}, {LrnForward::y}));
  PlanCheck plan(std::move(graph));
  plan.set("x", {0,     1e-25, 1e-18, 1e-10, 1e-3, 1,    3,    1e4, 1e10, 1e15, 1e18, -1e19,
                 1e-20, 1e20,  -0.0,  2,     -5,   0.25, 1e-7, 7,   11,   13,   17,   1e-12});
  plan.expect_agrees("cpu.local_norm");
}

TEST(LocalNorm, WindowsTooWideForARowRunElsewhere) {
  Graph graph;
  const Value x = graph.input("x", {1, 1500, 2}, f32, channels_last);
  graph.output("y",
               graph.apply(LrnForward{{.window = 1101}}, {{LrnForward::x, x}}, {LrnForward::y}));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.reference");
}

}  // namespace
}  // namespace ashlar::cpu
