// The gather engine: copied rows and picked elements, with and without conversion.
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

Value gather(Graph& g, const Gather& op, Value x, const Dims& index, DType integer = i64,
             const OutputSpec& spec = {}) {
  return g.apply(op, {{Gather::x, x}, {Gather::index, g.input("index", index, integer)}},
                 {Gather::y}, spec)[Gather::y];
}

// Rows of 770 elements, streamed or not; some outside.
TEST(Gather, Embeddings) {
  for (const DType dtype : {f64, f32, bf16, i8, boolean, i4})
    for (const Device& device : {Device::cpu(), without_caches()}) {
      Graph g;
      g.output("y", gather(g, {}, g.input("table", {50, 770}, dtype), {4, 33}, i32));
      PlanCheck(std::move(g)).expect_agrees("cpu.gather", {}, device);
    }
}

// Position embeddings are added by the epilogue, and the table is scaled where it is read.
TEST(Gather, FusesAddAndScale) {
  for (const DType dtype : {f32, bf16})
    for (const Device& device : {Device::cpu(), without_caches()}) {
      Graph g;
      const Value table = g.input("table", {50, 700}, dtype) * 2.0;
      const Value rows = gather(g, {}, table, {4, 30});
      g.output("y", rows + g.input("positions", {1, 30, 700}, dtype));
      PlanCheck plan(std::move(g));
      plan.expect_agrees("cpu.gather", {}, device);
      EXPECT_EQ(compile(plan.graph(), device).region_count(), 1);
    }
}

TEST(Gather, SlicesInsideOtherAxes) {
  for (const DType dtype : {f32, u8})
    for (const Layout& layout : {row_major, Layout(Dims{1, 3, 3 * 40, 3 * 40 * 8})}) {
      Graph g;
      g.output("y", gather(g, {.axis = 1}, g.input("x", {3, 40, 8, 33}, dtype, layout), {2, 17}));
      PlanCheck(std::move(g)).expect_agrees("cpu.gather");
    }
}

TEST(Gather, ElementsBothWays) {
  for (const DType dtype : {f32, f16, i8, e2m1})
    for (const std::int64_t axis : {0, 1})
      for (const bool converts : {false, true})
        for (const Device& device : {Device::cpu(), without_caches()}) {
          Graph g;
          const Dims index = axis == 0 ? Dims{90, 65} : Dims{7, 2500};
          OutputSpec spec;
          if (converts) spec.dtype = f16;
          g.output("y", gather(g, {.axis = axis, .mode = IndexMode::elements},
                               g.input("x", {axis == 0 ? 70 : 7, 65}, dtype), index, i64, spec));
          PlanCheck(std::move(g)).expect_agrees("cpu.gather", {}, device);
        }
}

// One index for all columns: rows, not elements.
TEST(Gather, BroadcastIndex) {
  Graph g;
  const Value index = g.input("index", {90, 64}, i64, Layout(Dims{1, 0}));
  g.output("y", g.apply(Gather{.mode = IndexMode::elements},
                        {{Gather::x, g.input("x", {70, 64}, f32)}, {Gather::index, index}},
                        {Gather::y}));
  PlanCheck(std::move(g)).expect_agrees("cpu.gather");
}

// Positions that would be inside in 32 bits, and the ends of 64 bits.
TEST(Indexing, NeverLeavesTheTensor) {
  const std::vector<double> positions = {-9.3e18, 4294967297.0, 9.3e18, -1, 3, -4294967295.0, 1};
  for (const std::int64_t axis : {0, 1})
    for (const auto out_of_range : {OutOfRange::zero, OutOfRange::clamp})
      for (const DType dtype : {f32, bf16}) {
        Graph g;
        const Value x = g.input("x", axis == 0 ? Dims{3, 600} : Dims{600, 3}, f32);
        const Value index = g.input("index", {7}, i64);
        const Value y = g.apply(Gather{.axis = axis, .out_of_range = out_of_range},
                                {{Gather::x, x}, {Gather::index, index}}, {Gather::y},
                                {.dtype = dtype})[Gather::y];
        g.output("y", y);
        g.output("z", g.apply(Scatter{.axis = axis},
                              {{Scatter::source, y}, {Scatter::index, index}, {Scatter::base, x}},
                              {Scatter::y}));
        PlanCheck plan(std::move(g));
        plan.set("index", positions);
        plan.expect_agrees("cpu.gather");
        plan.expect_agrees("cpu.scatter");
      }
}

// Doubles cannot hold these integers.
TEST(Gather, WideIntegersAreExact) {
  for (const auto mode : {IndexMode::slices, IndexMode::elements}) {
    Graph g;
    const Value x = g.input("x", {3}, i64), index = g.input("index", {2}, i64);
    g.output("y",
             g.apply(Gather{.mode = mode}, {{Gather::x, x}, {Gather::index, index}}, {Gather::y}));
    g.output("z", g.apply(Scatter{.mode = mode, .combine = ScatterMode::set},
                          {{Scatter::source, g.input("source", {2}, i64)},
                           {Scatter::index, index},
                           {Scatter::base, x}},
                          {Scatter::y}));
    constexpr std::int64_t kLarge = (std::int64_t{1} << 60) + 1;
    const std::vector<std::int64_t> values = {7, kLarge, -kLarge}, positions = {2, 1},
                                    source = {kLarge + 2, kLarge + 4};
    std::vector<std::int64_t> y(2), z(3);
    const Plan plan = compile(g, Device::cpu(), {.workspace_limit = 0});
    plan.run({{"x", values.data()},
              {"index", positions.data()},
              {"source", source.data()},
              {"y", y.data()},
              {"z", z.data()}});
    EXPECT_EQ(y, (std::vector<std::int64_t>{-kLarge, kLarge}));
    EXPECT_EQ(z, (std::vector<std::int64_t>{7, kLarge + 4, kLarge + 2}));
  }
}

}  // namespace
}  // namespace ashlar::cpu
