// Rotary position embedding: layouts, blocks of positions, distant positions, fusion.
#include <cmath>

#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu::rope {
namespace {

// [B, H, S, D] with heads inside of positions in memory.
Layout heads_inside(const Dims& x) { return Dims{x[1] * x[2] * x[3], x[3], x[1] * x[3], 1}; }

Graph rope_of(const Dims& x, DType dtype, const Layout& layout, const Rope& op,
              const Dims& positions = {}) {
  Graph graph;
  const Value given = positions.empty() ? Value() : graph.input("positions", positions, i64);
  graph.output(
      "y",
      graph.apply(op, {{Rope::x, graph.input("x", x, dtype, layout)}, {Rope::positions, given}},
                  {Rope::y}));
  return graph;
}

Rope with_pairs(RopePairs pairs) {
  Rope op;
  op.pairs = pairs;
  return op;
}

constexpr RopePairs kPairs[] = {RopePairs::half, RopePairs::interleaved};

TEST(RopeEngine, DtypesLayoutsAndBlocks) {
  // 70 positions of 64 pairs are three blocks, the last one partial.
  for (const RopePairs pairs : kPairs)
    for (const DType dtype : kFloats)
      for (const Dims& x : {Dims{2, 3, 70, 128}, Dims{1, 2, 5, 22}})
        for (const bool inside : {false, true}) {
          SCOPED_TRACE(testing::Message() << to_string(x) << " " << to_string(dtype) << inside);
          const Layout layout = inside ? heads_inside(x) : Layout(row_major);
          PlanCheck(rope_of(x, dtype, layout, with_pairs(pairs))).expect_agrees("cpu.rope");
          PlanCheck(rope_of(x, dtype, layout, with_pairs(pairs), {x[0], x[2]}))
              .expect_agrees("cpu.rope");
          PlanCheck(rope_of(x, dtype, layout, with_pairs(pairs), {1, x[2]}))
              .expect_agrees("cpu.rope");
        }
}

TEST(RopeEngine, PartialWidth) {
  for (const RopePairs pairs : kPairs)
    for (const std::int64_t width : {2, 30, 64}) {
      Rope op = with_pairs(pairs);
      op.width = width;
      op.inverse = width == 30;
      PlanCheck(rope_of({2, 2, 9, 67}, f32, row_major, op)).expect_agrees("cpu.rope");
    }
}

// Angles reduced in single precision would be wrong by about 0.06 at position 10^6.
TEST(RopeEngine, DistantPositions) {
  for (const DType dtype : {f32, f64}) {
    PlanCheck plan(rope_of({1, 1, 6, 64}, dtype, row_major, {}, {1, 6}));
    plan.set("positions", {0, 1, 999999, 1000000, -1000000, 1e9});
    plan.set("x", [] {
      std::vector<double> x(6 * 64, 0.0);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 64 < 32 ? 1.0 : 0.0;
      return x;
    }());
    plan.expect_agrees("cpu.rope");
    const std::vector<double> y = plan.get("y");
    EXPECT_NEAR(y[3 * 64], std::cos(1e6), 1e-7);
    EXPECT_NEAR(y[3 * 64 + 32], std::sin(1e6), 1e-7);
  }
}

TEST(RopeEngine, Yarn) {
  Rope op;
  op.factor = 16;
  op.base = 500000;
  PlanCheck(rope_of({1, 2, 40, 64}, bf16, row_major, op, {1, 40})).expect_agrees("cpu.rope");
}

TEST(RopeEngine, RowsLargerThanTheCaches) {
  for (const RopePairs pairs : kPairs)
    for (const DType dtype : {f32, bf16})
      for (const Dims& x : {Dims{1, 3, 40, 128}, Dims{1, 3, 40, 22}})
        PlanCheck(rope_of(x, dtype, row_major, with_pairs(pairs)))
            .expect_agrees("cpu.rope", {}, without_caches());
}

TEST(RopeEngine, Fused) {
  Graph graph;
  const Value x = graph.input("x", {2, 3, 7, 16}, bf16);
  const Value scale = graph.input("scale", {1, 1, 1, 16}, f32);
  const Value rotated = graph.apply(Rope{}, {{Rope::x, x * scale}}, {Rope::y});
  graph.output("y", rotated * 0.25, {.dtype = f16});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.rope");
  EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
}

}  // namespace
}  // namespace ashlar::cpu::rope
