// The scatter engine: sorted slices and lines, and results that do not depend on threads.
#include <cstring>

#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

struct Problem {
  Scatter op = {};
  Dims y, index, source;
  bool base = false;
};

Graph graph_of(const Problem& p, DType dtype) {
  Graph g;
  OutputSpec spec;
  spec.dims = p.y;
  g.output("y", g.apply(p.op,
                        {{Scatter::source, g.input("source", p.source, dtype)},
                         {Scatter::index, g.input("index", p.index, i64)},
                         {Scatter::base, p.base ? g.input("base", p.y, dtype) : Value()}},
                        {Scatter::y}, spec));
  return g;
}

void expect_agrees(const Problem& p, std::initializer_list<DType> dtypes) {
  for (const DType dtype : dtypes)
    for (const Device& device : {Device::cpu(), without_caches()})
      PlanCheck(graph_of(p, dtype)).expect_agrees("cpu.scatter", {}, device);
}

// The gradient of an embedding: long runs of zeros between rows of sums.
TEST(Scatter, EmbeddingGradient) {
  expect_agrees({.y = {3000, 100}, .index = {4, 40}, .source = {4, 40, 100}},
                {f64, f32, bf16, e4m3});
}

// Few slices with many contributions each: rows are split.
TEST(Scatter, SegmentSums) {
  expect_agrees({.y = {2, 768}, .index = {500}, .source = {500, 768}}, {f32, f16});
  expect_agrees({.y = {1, 3000}, .index = {20}, .source = {20, 3000}}, {f32});
}

TEST(Scatter, AppendToCache) {
  expect_agrees({.op = {.axis = 2, .combine = ScatterMode::set},
                 .y = {2, 4, 500, 64},
                 .index = {3},
                 .source = {2, 4, 3, 64},
                 .base = true},
                {f32, bf16, i8, boolean});
}

TEST(Scatter, LinesAlongTheLastAxis) {
  expect_agrees({.op = {.axis = 1}, .y = {9, 700}, .index = {2500}, .source = {9, 2500}},
                {f64, f32, bf16});
  expect_agrees({.op = {.axis = 1, .mode = IndexMode::elements},
                 .y = {9, 300},
                 .index = {9, 2100},
                 .source = {9, 2100},
                 .base = true},
                {f32, u8});
}

TEST(Scatter, ElementsAcrossLines) {
  for (const auto combine : {ScatterMode::add, ScatterMode::set, ScatterMode::max})
    expect_agrees({.op = {.axis = 0, .mode = IndexMode::elements, .combine = combine},
                   .y = {70, 65},
                   .index = {300, 65},
                   .source = {300, 65}},
                  {f32, f16});
}

// More elements along the axis than are accumulated at once.
TEST(Scatter, VeryLongLines) {
  expect_agrees({.y = {270000}, .index = {500}, .source = {500}}, {f32});
  expect_agrees(
      {.op = {.mode = IndexMode::elements}, .y = {40000, 3}, .index = {500, 3}, .source = {500, 3}},
      {f32});
}

TEST(Scatter, FusesBothSides) {
  for (const Dims& y : {Dims{40, 300}, Dims{300, 40}}) {
    Graph g;
    const std::int64_t axis = y[0] == 40 ? 0 : 1;
    Dims source = y;
    source[static_cast<int>(axis)] = 77;
    const Value scaled = g.input("source", source, f32) * g.input("factor", {1, 1}, f32);
    const Value base = relu(g.input("base", y, f32));
    const Value sums = g.apply(Scatter{.axis = axis},
                               {{Scatter::source, scaled},
                                {Scatter::index, g.input("index", {77}, i32)},
                                {Scatter::base, base}},
                               {Scatter::y})[Scatter::y];
    g.output("y", relu(sums));
    PlanCheck plan(std::move(g));
    plan.expect_agrees("cpu.scatter");
    EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
  }
}

// Sums of floats depend on their order: the same bits with any number of threads.
TEST(Scatter, RepeatsBitwiseWithAnyNumberOfThreads) {
  for (const Problem& p :
       {Problem{.y = {5, 900}, .index = {3000}, .source = {3000, 900}},
        Problem{.op = {.axis = 1}, .y = {40, 50}, .index = {3000}, .source = {40, 3000}},
        Problem{.op = {.mode = IndexMode::elements},
        .y = {50, 200},
        .index = {1000, 200},
        .source = {1000, 200}}}) {
    const Graph g = graph_of(p, f32);
    std::vector<float> source(static_cast<std::size_t>(element_count(p.source)));
    std::vector<std::int64_t> index(static_cast<std::size_t>(element_count(p.index)));
    std::uint64_t state = 1;
    const auto next = [&] {
      return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33;
    };
    for (float& value : source) value = static_cast<float>(next()) * 0x1p-31f - 0.5f;
    for (std::int64_t& i : index) i = static_cast<std::int64_t>(next() % 8);
    std::vector<float> first;
    for (const int units : {1, 2, 3, 8}) {
      DeviceProps props = Device::cpu().props();
      props.compute_units = units;
      std::vector<float> y(static_cast<std::size_t>(element_count(p.y)));
      compile(g, Device(props), {.workspace_limit = 0})
          .run({{"source", source.data()}, {"index", index.data()}, {"y", y.data()}});
      if (first.empty()) first = y;
      EXPECT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace ashlar::cpu
