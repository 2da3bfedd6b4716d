// Reductions over every set of axes, with and without index.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

constexpr ReductionMode kModes[] = {
    ReductionMode::add,   ReductionMode::mul,   ReductionMode::min,
    ReductionMode::max,   ReductionMode::amax,  ReductionMode::avg,
    ReductionMode::norm1, ReductionMode::norm2, ReductionMode::mul_no_zeros};

void check(const Dims& dims, const Dims& axes, ReductionMode mode, DType dtype,
           const Layout& layout = row_major) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " over " << to_string(axes) << " mode "
                                  << static_cast<int>(mode) << " " << to_string(dtype));
  Graph graph;
  Value x = graph.input("x", dims, dtype, layout);
  graph.output("y", graph.reduce(x, mode, axes));
  PlanCheck plan(std::move(graph));
  plan.fill("x", 0.5, 1.5);
  plan.expect_agrees("cpu.reduction");
}

TEST(Reduction, EveryModeOverEverySetOfAxes) {
  const Dims axes[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  for (ReductionMode mode : kModes)
    for (const Dims& set : axes) check({3, 5, 7}, set, mode, f32);
}

TEST(Reduction, DtypesAndLayouts) {
  for (DType dtype : {f64, f32, f16, bf16, e4m3, i32, i8})
    for (const Dims& axes : {Dims{1}, Dims{2, 3}, Dims{0, 2, 3}}) {
      check({2, 17, 5, 3}, axes, ReductionMode::add, dtype);
      check({2, 17, 5, 3}, axes, ReductionMode::max, dtype, channels_last);
      check({2, 17, 5, 3}, axes, ReductionMode::avg, dtype, channels_last);
    }
}

TEST(Reduction, LongRowsAndManyColumns) {
  check({1, 100003}, {1}, ReductionMode::add, f32);
  check({5001, 3}, {0}, ReductionMode::add, f32);
  check({3001, 1030}, {0}, ReductionMode::norm2, f32);
  check({64, 64, 65}, {0, 1, 2}, ReductionMode::add, f32);
}

TEST(Reduction, OddStrides) {
  check({4, 6, 10}, {1}, ReductionMode::add, f32, Layout(Dims{211, 31, 3}));
  check({4, 6, 10}, {0, 2}, ReductionMode::max, f16, Layout(Dims{1, 4, 24}));
}

TEST(Reduction, ZeroExtents) {
  check({0, 5}, {0}, ReductionMode::add, f32);
  check({0, 5}, {0}, ReductionMode::mul, f32);
  check({0, 5}, {1}, ReductionMode::add, f32);
  check({0, 5}, {0}, ReductionMode::amax, f32);
}

TEST(Reduction, OfBooleans) {
  for (ReductionMode mode :
       {ReductionMode::add, ReductionMode::avg, ReductionMode::min, ReductionMode::max})
    for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}, Dims{2}}) {
      check({5, 33, 7}, axes, mode, boolean);
      check({5, 33, 7}, axes, mode, boolean, channels_last);
      check({2, 0, 3}, axes, mode, boolean);
    }
  check({1, 100003}, {1}, ReductionMode::add, boolean);
}

void check_index(const Dims& dims, const Dims& axes, ReductionMode mode, DType dtype,
                 const Layout& layout = row_major) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " over " << to_string(axes) << " mode "
                                  << static_cast<int>(mode) << " " << to_string(dtype));
  Graph graph;
  const Value x = graph.input("x", dims, dtype, layout);
  const auto r = graph.apply(Reduction{.mode = mode, .axes = axes}, {{Reduction::x, x}},
                             {Reduction::y, Reduction::index});
  graph.output("y", r[Reduction::y]);
  graph.output("index", r[Reduction::index]);
  PlanCheck plan(std::move(graph));
  plan.fill("x", -4.0, 4.0);  // narrow types and integers: many ties
  plan.expect_agrees("cpu.reduction");
}

TEST(Reduction, IndexOfExtremes) {
  const Dims axes[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  for (ReductionMode mode : {ReductionMode::min, ReductionMode::max, ReductionMode::amax})
    for (const Dims& set : axes)
      for (DType dtype : {f32, e4m3, i8}) {
        check_index({3, 5, 7}, set, mode, dtype);
        check_index({3, 5, 7}, set, mode, dtype, channels_last);
      }
}

TEST(Reduction, IndexInLongRowsAndManyColumns) {
  check_index({1, 100003}, {1}, ReductionMode::max, e5m2);
  check_index({5001, 3}, {0}, ReductionMode::min, e5m2);
  check_index({301, 1030}, {0}, ReductionMode::amax, f16);
  check_index({16, 64, 65}, {0, 1, 2}, ReductionMode::max, e4m3, Layout(Dims{1, 16, 16 * 64}));
  check_index({9, 70, 65}, {0, 2}, ReductionMode::min, e4m3, Layout(Dims{70, 1, 630}));
}

TEST(Reduction, IndexOfNaN) {
  for (ReductionMode mode : {ReductionMode::min, ReductionMode::max, ReductionMode::amax})
    for (std::int64_t axis : {0, 1}) {
      Graph graph;
      const auto r = graph.apply(Reduction{.mode = mode, .axes = {axis}},
                                 {{Reduction::x, graph.input("x", {3, 3}, f32)}},
                                 {Reduction::y, Reduction::index});
      graph.output("y", r[Reduction::y]);
      graph.output("index", r[Reduction::index]);
      PlanCheck plan(std::move(graph));
      const double nan = std::numeric_limits<double>::quiet_NaN();
      plan.set("x", {1, nan, -2, nan, 3, 5, nan, nan, 9});
      plan.expect_agrees("cpu.reduction");
    }
}

TEST(Reduction, NaNReachesExtremes) {
  for (ReductionMode mode : {ReductionMode::min, ReductionMode::max, ReductionMode::amax})
    for (std::int64_t axis : {0, 1}) {
      Graph graph;
      Value x = graph.input("x", {40, 50}, f32);
      graph.output("y", graph.reduce(x, mode, {axis}));
      PlanCheck plan(std::move(graph));
      std::vector<double> values(2000, 1.0);
      values[777] = std::numeric_limits<double>::quiet_NaN();
      plan.set("x", values);
      plan.expect_agrees("cpu.reduction");
    }
}

TEST(Reduction, FusedOnBothSides) {
  Graph graph;
  Value x = graph.input("x", {8, 33, 20}, f16);
  Value b = graph.input("b", {1, 33, 1}, f32);
  Value sum = graph.reduce(gelu(x * b), ReductionMode::add, {0, 2});
  graph.output("y", relu(sum + b), {.dtype = bf16});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.reduction");
  EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
}

}  // namespace
}  // namespace ashlar::cpu
