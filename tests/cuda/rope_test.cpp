// Rotary position embedding: kernels compile without spills, and on a GPU, real or emulated, agree
// with the reference.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda::rope {
namespace {

struct Rotation {
  Dims x = {2, 4, 70, 128};
  DType dtype = bf16;
  RopePairs pairs = RopePairs::half;
  bool heads_inside = false, shared = false;
  std::int64_t width = 0;
};

Graph rope_of(const Rotation& c) {
  Rope op;
  op.pairs = c.pairs;
  op.width = c.width;
  op.factor = 4;
  const Layout layout = c.heads_inside
                            ? Layout(Dims{c.x[1] * c.x[2] * c.x[3], c.x[3], c.x[1] * c.x[3], 1})
                            : Layout(row_major);
  Graph graph;
  graph.output("y", graph.apply(op,
                                {{Rope::x, graph.input("x", c.x, c.dtype, layout)},
                                 {Rope::positions,
                                  graph.input("positions", {c.shared ? 1 : c.x[0], c.x[2]}, i32)}},
                                {Rope::y}));
  return graph;
}

constexpr RopePairs kPairs[] = {RopePairs::half, RopePairs::interleaved};

TEST(RopeEngine, Compiles) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  for (const RopePairs pairs : kPairs)
    for (const DType dtype : {bf16, f32})
      expect_compiles(rope_engine(),
                      rope_of({.x = {1, 32, 4096, 128}, .dtype = dtype, .pairs = pairs}),
                      {kHopper});
}

TEST(RopeEngine, IsTheFirstChoice) {
  const auto outline = build_plan(rope_of({.x = {1, 32, 4096, 128}}), Device::named("h200").props(),
                                  {}, nullptr, false);
  ASSERT_EQ(outline->steps.size(), 1u);
  EXPECT_EQ(outline->steps[0].choice.engine->id(), "cuda.rope");
}

TEST(RopeEngine, RefusesTablesPerHead) {
  Graph graph;
  graph.output("y", graph.apply(Rope{},
                                {{Rope::x, graph.input("x", {1, 4, 8, 16}, f32)},
                                 {Rope::cos, graph.input("cos", {1, 4, 8, 8}, f32)},
                                 {Rope::sin, graph.input("sin", {1, 1, 8, 8}, f32)}},
                                {Rope::y}));
  const auto outline = build_plan(graph, Device::named("h200").props(), {}, nullptr, false);
  const Support support =
      rope_engine().supports(outline->steps.at(0).region, Device::named("h200").props());
  EXPECT_EQ(support.reason(), "cos or sin has 4 heads, expected 1 for all");
}

class GpuRope : public GpuTest {
 protected:
  static void expect_agrees(const Rotation& rotation) {
    cuda::expect_agrees(rope_engine(), rope_of(rotation), true);
  }
};

TEST_F(GpuRope, PairsAndLayouts) {
  for (const RopePairs pairs : kPairs)
    for (const bool inside : {false, true})
      for (const bool shared : {false, true})
        expect_agrees({.pairs = pairs, .heads_inside = inside, .shared = shared});
}

TEST_F(GpuRope, WidthsAndDtypes) {
  for (const RopePairs pairs : kPairs)
    for (const DType dtype : {f32, f64, f16})
      for (const std::int64_t width : {8, 6, 22})
        expect_agrees({.x = {2, 3, 11, 24}, .dtype = dtype, .pairs = pairs, .width = width});
}

TEST_F(GpuRope, UnalignedFallback) {
  for (const RopePairs pairs : kPairs)
    for (const std::int64_t offset : {0, 8})
      cuda::expect_agrees(rope_of({.x = {1, 2, 9, 32}, .pairs = pairs}), "cuda.rope",
                          {.offset = offset});
}

}  // namespace
}  // namespace ashlar::cuda::rope
