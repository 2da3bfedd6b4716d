// Grid sampling and grid generation.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct GridCase {
  Dims x, grid;
  GridSampleAttributes op;
  Layout layout = row_major;
  DType dtype = f32, grid_dtype = f32;
};

void check(const GridCase& c) {
  SCOPED_TRACE(testing::Message() << to_string(c.x) << " at " << to_string(c.grid) << " mode "
                                  << static_cast<int>(c.op.mode) << " padding "
                                  << static_cast<int>(c.op.padding) << " " << to_string(c.dtype));
  Graph graph;
  const Value x = graph.input("x", c.x, c.dtype, c.layout);
  const Value grid = graph.input("grid", c.grid, c.grid_dtype);
  const Value y = graph.apply(GridSampleForward{c.op},
                              {{GridSampleForward::x, x}, {GridSampleForward::grid, grid}},
                              {GridSampleForward::y});
  graph.output("y", y);
  const Value dy = graph.input("dy", y.dims(), c.dtype, c.layout);
  const auto gradients = graph.apply(
      GridSampleBackward{c.op},
      {{GridSampleBackward::x, x}, {GridSampleBackward::grid, grid}, {GridSampleBackward::dy, dy}},
      {GridSampleBackward::dx, GridSampleBackward::dgrid});
  graph.output("dx", gradients[GridSampleBackward::dx]);
  graph.output("dgrid", gradients[GridSampleBackward::dgrid]);
  PlanCheck plan(std::move(graph));
  plan.fill("grid", -1.5, 1.5);
  plan.expect_agrees("cpu.grid_sample");
}

TEST(GridSample, BothTraversals) {
  for (const Layout& layout : {row_major, channels_last})
    for (int mode = 0; mode < 2; ++mode)
      for (int padding = 0; padding < 3; ++padding)
        check({{2, 37, 11, 9},
               {2, 8, 13, 2},
               {static_cast<GridSampleMode>(mode), static_cast<GridPadding>(padding), mode == 0},
               layout});
}

// Long rows of positions, many channels, three axes.
TEST(GridSample, Shapes) {
  check({{1, 3, 7, 5}, {1, 1, 700, 2}, {}});
  check({{1, 1100, 3, 3}, {1, 2, 2, 2}, {}, channels_last});
  check({{1, 70, 3, 3}, {1, 3, 2, 2}, {}});
  for (const Layout& layout : {row_major, channels_last})
    check({{1, 9, 4, 5, 3}, {1, 3, 2, 4, 3}, {.padding = GridPadding::reflection}, layout});
}

TEST(GridSample, Dtypes) {
  for (const Layout& layout : {row_major, channels_last})
    for (DType dtype : kFloats)
      check({{1, 12, 6, 5},
             {1, 5, 4, 2},
             {.align_corners = false},
             layout,
             dtype,
             dtype == f64 ? f64 : f32});
}

TEST(GridSample, NonFinitePositions) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const Layout& layout : {row_major, channels_last})
    for (int padding = 0; padding < 3; ++padding)
      for (int mode = 0; mode < 2; ++mode) {
        const GridSampleAttributes op{static_cast<GridSampleMode>(mode),
                                      static_cast<GridPadding>(padding), true};
        Graph graph;
        const Value x = graph.input("x", {1, 10, 3, 4}, f32, layout);
        const Value grid = graph.input("grid", {1, 2, 3, 2}, f32);
        graph.output("y", graph.apply(GridSampleForward{op},
                                      {{GridSampleForward::x, x}, {GridSampleForward::grid, grid}},
                                      {GridSampleForward::y}));
        const auto gradients =
            graph.apply(GridSampleBackward{op},
                        {{GridSampleBackward::x, x},
                         {GridSampleBackward::grid, grid},
                         {GridSampleBackward::dy, graph.input("dy", {1, 10, 2, 3}, f32, layout)}},
                        {GridSampleBackward::dx, GridSampleBackward::dgrid});
        graph.output("dx", gradients[GridSampleBackward::dx]);
        graph.output("dgrid", gradients[GridSampleBackward::dgrid]);
        PlanCheck plan(std::move(graph));
        plan.set("grid", {kNaN, 0, kInf, 0.3, -kInf, -0.2, 1e30, 0.1, -1e20, 1e20, 0.25, 0.25});
        plan.expect_agrees("cpu.grid_sample");
      }
}

TEST(GridGenerator, ForwardAndBackward) {
  for (const Dims& size : {Dims{30, 2100}, Dims{7, 5, 9}})
    for (DType dtype : kFloats) {
      const std::int64_t d = size.rank();
      Graph graph;
      const Value theta = graph.input("theta", {3, d, d + 1}, dtype);
      const Value grid =
          graph.apply(GridGeneratorForward{{size, dtype != f16}},
                      {{GridGeneratorForward::theta, theta}}, {GridGeneratorForward::grid});
      graph.output("grid", grid);
      const Value dgrid = graph.input("dgrid", grid.dims(), dtype);
      graph.output("dtheta", graph.apply(GridGeneratorBackward{{size, dtype != f16}},
                                         {{GridGeneratorBackward::dgrid, dgrid}},
                                         {GridGeneratorBackward::dtheta}));
      PlanCheck(std::move(graph)).expect_agrees("cpu.grid_generator");
    }
}

}  // namespace
}  // namespace ashlar::cpu
