// Gather and scatter on values small enough to verify manually.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Numbers = std::vector<double>;
constexpr double kHuge = 9.3e18;  // stored as the largest i64

Numbers gathered(const Gather& op, const Dims& x, const Dims& index, const Numbers& positions) {
  Graph g;
  g.output("y", g.apply(op,
                        {{Gather::x, g.input("x", x, f32)},
                         {Gather::index, g.input("index", index, i64)}},
                        {Gather::y}));
  Evaluation e(g);
  Numbers values;
  for (std::int64_t i = 0; i < element_count(x); ++i) values.push_back(static_cast<double>(10 + i));
  e.set("x", values);
  e.set("index", positions);
  e.expect_nodes_agree();
  return e.get("y");
}

TEST(HandComputed, GatherSlices) {
  EXPECT_EQ(gathered({}, {3, 2}, {4}, {2, 0, 0, 1}), (Numbers{14, 15, 10, 11, 10, 11, 12, 13}));
  EXPECT_EQ(gathered({.axis = -1}, {2, 3}, {2, 1}, {2, 1}), (Numbers{12, 11, 15, 14}));
  EXPECT_EQ(gathered({.axis = 1}, {2, 2, 2}, {1}, {1}), (Numbers{12, 13, 16, 17}));
}

TEST(HandComputed, GatherElements) {
  const Gather rows{.axis = 0, .mode = IndexMode::elements};
  EXPECT_EQ(gathered(rows, {3, 2}, {2, 2}, {2, 0, 1, 1}), (Numbers{14, 11, 12, 13}));
  const Gather columns{.axis = 1, .mode = IndexMode::elements};
  EXPECT_EQ(gathered(columns, {2, 3}, {2, 4}, {0, 0, 2, 1, 1, 1, 1, 0}),
            (Numbers{10, 10, 12, 11, 14, 14, 14, 13}));
}

// 2^32 + 1 would be 1 in 32 bits.
TEST(HandComputed, GatherOutside) {
  const Numbers positions = {-1, 3, 4294967297.0, -kHuge, kHuge, 1};
  EXPECT_EQ(gathered({}, {3}, {6}, positions), (Numbers{0, 0, 0, 0, 0, 11}));
  EXPECT_EQ(gathered({.out_of_range = OutOfRange::clamp}, {3}, {6}, positions),
            (Numbers{10, 12, 12, 10, 12, 11}));
  for (const auto mode : {OutOfRange::zero, OutOfRange::clamp})
    EXPECT_EQ(gathered({.out_of_range = mode}, {0, 2}, {2}, {0, -1}), (Numbers{0, 0, 0, 0}));
}

struct Scattered {
  Scatter op = {};
  Dims y = {3, 2}, index = {4}, source = {4, 2};
  Numbers positions = {2, 0, 2, 7}, values = {1, 2, 3, 4, 5, 6, 100, 100};
  Numbers base = {};  // none
};

Numbers scattered(const Scattered& c) {
  Graph g;
  const Value source = g.input("source", c.source, f32), index = g.input("index", c.index, i64);
  const Value base = c.base.empty() ? Value() : g.input("base", c.y, f32);
  OutputSpec spec;
  spec.dims = c.y;
  g.output("y", g.apply(c.op,
                        {{Scatter::source, source}, {Scatter::index, index}, {Scatter::base, base}},
                        {Scatter::y}, spec));
  Evaluation e(g);
  e.set("source", c.values);
  e.set("index", c.positions);
  if (base) e.set("base", c.base);
  e.expect_nodes_agree();
  return e.get("y");
}

TEST(HandComputed, ScatterSlices) {
  const Numbers base = {10, 20, 30, 40, 50, 60};
  const auto with = [&](ScatterMode combine, bool has_base) {
    return scattered({.op = {.combine = combine}, .base = has_base ? base : Numbers{}});
  };
  EXPECT_EQ(with(ScatterMode::add, false), (Numbers{3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(with(ScatterMode::add, true), (Numbers{13, 24, 30, 40, 56, 68}));
  EXPECT_EQ(with(ScatterMode::set, false), (Numbers{3, 4, 0, 0, 5, 6})) << "the last one stays";
  EXPECT_EQ(with(ScatterMode::set, true), (Numbers{3, 4, 30, 40, 5, 6}));
  EXPECT_EQ(with(ScatterMode::mul, false), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(with(ScatterMode::mul, true), (Numbers{30, 80, 30, 40, 250, 720}));
  EXPECT_EQ(with(ScatterMode::min, true), (Numbers{3, 4, 30, 40, 1, 2}));
  EXPECT_EQ(with(ScatterMode::max, true), base);
  EXPECT_EQ(with(ScatterMode::max, false), (Numbers{3, 4, 0, 0, 5, 6}));
}

TEST(HandComputed, ScatterOfManyAxes) {
  const Scattered columns{.op = {.axis = 1},
                          .y = {2, 3},
                          .index = {2, 2},
                          .source = {2, 2, 2},
                          .positions = {1, 2, 1, 0},
                          .values = {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(scattered(columns), (Numbers{4, 4, 2, 8, 12, 6}));
  Scattered last = columns;
  last.op.combine = ScatterMode::set;
  EXPECT_EQ(scattered(last), (Numbers{4, 3, 2, 8, 7, 6}));
}

TEST(HandComputed, ScatterElements) {
  Scattered c{.op = {.axis = 0, .mode = IndexMode::elements},
              .y = {3, 2},
              .index = {3, 2},
              .source = {3, 2},
              .positions = {0, 2, 0, 2, 1, -1},
              .values = {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(scattered(c), (Numbers{4, 0, 5, 0, 0, 6}));
  c.op.combine = ScatterMode::set;
  EXPECT_EQ(scattered(c), (Numbers{3, 0, 5, 0, 0, 4}));
  c.op = {.axis = 1, .mode = IndexMode::elements};
  c.positions = {1, 1, 0, 1, 9, -9};
  EXPECT_EQ(scattered(c), (Numbers{0, 3, 3, 4, 0, 0}));
}

TEST(HandComputed, ScatterOutside) {
  EXPECT_EQ(scattered({.positions = {-1, 3, 4294967297.0, kHuge}}), Numbers(6, 0.0));
  EXPECT_EQ(scattered({.positions = {-kHuge, 2, 4294967296.0, -4294967295.0}}),
            (Numbers{0, 0, 0, 0, 3, 4}));
}

// An index that is computed from rounded values may select other elements: nothing is known.
TEST(Bounds, OfAnUncertainIndex) {
  Graph g;
  const Value x = g.input("x", {2}, f32), table = g.input("table", {4}, f32);
  const Value index = g.pointwise(PointwiseMode::identity, std::array{x * 0.1}, {}, {.dtype = i32});
  g.output("y", g.apply(Gather{}, {{Gather::x, table}, {Gather::index, index}}, {Gather::y}));
  g.output("s", g.apply(Scatter{}, {{Scatter::source, x}, {Scatter::index, index}}, {Scatter::y},
                        of_dims({4})));
  Evaluation e(g);
  e.set("x", {20, 15});  // 2 certainly, 1.5 to either side
  e.set("table", {1, 2, 3, 4});
  const Expected gathered = e.oracle("y"), scattered = e.oracle("s");
  EXPECT_EQ(gathered.bounds[0], 0.0);
  EXPECT_EQ(gathered.bounds[1], kInf);
  for (const double error : scattered.bounds) EXPECT_EQ(error, kInf);
}

}  // namespace
}  // namespace ashlar::reference
