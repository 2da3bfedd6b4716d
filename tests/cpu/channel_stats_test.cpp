// Per-channel sums of batch norm.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

void check(const Dims& dims, DType dtype, const Layout& layout) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " " << to_string(dtype));
  Dims channels = Dims::filled(dims.rank(), 1);
  channels[1] = dims[1];
  {
    Graph graph;
    const Value x = graph.input("x", dims, dtype, layout);
    const auto r =
        graph.apply(GenStats{}, {{GenStats::x, relu(x)}}, {GenStats::sum, GenStats::sq_sum});
    graph.output("sum", r[GenStats::sum]);
    graph.output("sq_sum", r[GenStats::sq_sum]);
    PlanCheck plan(std::move(graph));
    plan.fill("x", -1.0, 3.0);
    plan.expect_agrees("cpu.channel_stats");
  }
  using Bn = BnBackwardWeights;
  Graph graph;
  const DType wide = dtype == f64 ? f64 : f32;
  const auto r = graph.apply(Bn{},
                             {{Bn::x, graph.input("x", dims, dtype, layout)},
                              {Bn::dy, graph.input("dy", dims, dtype, layout)},
                              {Bn::mean, graph.input("mean", channels, wide)},
                              {Bn::inv_variance, graph.input("inv", channels, wide)},
                              {Bn::scale, graph.input("scale", channels, wide)}},
                             {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias});
  for (std::size_t slot = 0; slot < r.all().size(); ++slot)
    graph.output("out" + std::to_string(slot), r.all()[slot]);
  PlanCheck plan(std::move(graph));
  plan.fill("inv", 0.5, 2.0);
  plan.expect_agrees("cpu.channel_stats");
}

TEST(ChannelStats, ShapesAndLayouts) {
  for (const Layout& layout : {row_major, channels_last}) {
    check({3, 12, 5, 7}, f32, layout);
    check({2, 600, 3, 3}, f32, layout);
    check({1, 3, 70, 70}, f32, layout);
    check({2, 4, 3, 4, 5}, f32, layout);
  }
  check({64, 10}, f32, row_major);
}

TEST(ChannelStats, Dtypes) {
  for (DType dtype : kFloats) check({2, 40, 9}, dtype, channels_last);
}

}  // namespace
}  // namespace ashlar::cpu
