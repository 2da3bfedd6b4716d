// Gather and scatter on a GPU, real or emulated: vectors along slices, unaligned addresses, fused
// work, all configurations; and what the engines refuse.
#include <cstring>
#include <limits>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

Graph embedding(DType dtype, std::int64_t width, bool fused) {
  Graph g;
  Value table = g.input("table", {40, width}, dtype);
  if (fused) table = table * 2.0;
  const Value y = g.apply(Gather{.out_of_range = OutOfRange::clamp},
                          {{Gather::x, table}, {Gather::index, g.input("index", {3, 5}, i64)}},
                          {Gather::y})[Gather::y];
  g.output("y", fused ? y + g.input("positions", {1, 5, width}, dtype) : y);
  return g;
}

Graph embedding_gradient(DType dtype, ScatterMode combine, bool base) {
  Graph g;
  OutputSpec spec;
  spec.dims = {20, 72};
  g.output("y", g.apply(Scatter{.combine = combine},
                        {{Scatter::source, g.input("source", {4, 30, 72}, dtype)},
                         {Scatter::index, g.input("index", {4, 30}, i32)},
                         {Scatter::base, base ? g.input("base", spec.dims, dtype) : Value()}},
                        {Scatter::y}, spec));
  return g;
}

Graph elements() {
  Graph g;
  const Value index = g.input("index", {7, 9}, i64);
  const Value picked =
      g.apply(Gather{.axis = 1, .mode = IndexMode::elements},
              {{Gather::x, g.input("x", {7, 30}, f16)}, {Gather::index, index}}, {Gather::y});
  OutputSpec spec;
  spec.dims = {7, 12};
  g.output("y", g.apply(Scatter{.axis = 1, .mode = IndexMode::elements},
                        {{Scatter::source, picked}, {Scatter::index, index}}, {Scatter::y}, spec));
  return g;
}

class IndexingText : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(IndexingText, Compiles) {
  for (const DType dtype : {f32, bf16}) {
    expect_compiles(gather_engine(), embedding(dtype, 768, true), {kHopper}, true);
    expect_compiles(scatter_engine(), embedding_gradient(dtype, ScatterMode::add, true), {kHopper});
  }
  expect_compiles(gather_engine(), embedding(i8, 768, false), {"sm_75", "sm_120"});
}

TEST(IndexingEngines, AreChosen) {
  const auto engines_of = [](const Graph& graph) {
    std::vector<std::string> ids;
    const auto outline = build_plan(graph, Device::named("h200").props(), {}, nullptr, false);
    for (const auto& step : outline->steps) ids.emplace_back(step.choice.engine->id());
    return ids;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(engines_of(embedding(f32, 768, true)), Ids{"cuda.gather"});
  EXPECT_EQ(engines_of(embedding_gradient(f32, ScatterMode::add, false)), Ids{"cuda.scatter"});
  EXPECT_EQ(engines_of(elements()), (Ids{"cuda.gather", "cuda.generic"}));
}

class GpuIndexing : public GpuTest {};

TEST_F(GpuIndexing, Embeddings) {
  for (const DType dtype : {f64, f32, bf16, i8})
    for (const bool fused : {false, true})
      cuda::expect_agrees(gather_engine(), embedding(dtype, 272, fused), true);
  cuda::expect_agrees(gather_engine(), embedding(f32, 67, false), true);
}

TEST_F(GpuIndexing, ScatterOfSlices) {
  for (const ScatterMode combine : {ScatterMode::set, ScatterMode::add, ScatterMode::max})
    for (const bool base : {false, true})
      cuda::expect_agrees(scatter_engine(), embedding_gradient(f32, combine, base), true);
  cuda::expect_agrees(scatter_engine(), embedding_gradient(bf16, ScatterMode::add, false), true);
}

TEST_F(GpuIndexing, UnalignedTensors) {
  expect_agrees(embedding(f32, 272, true), "cuda.gather", {.offset = 4});
  expect_agrees(embedding_gradient(f32, ScatterMode::add, true), "cuda.scatter", {.offset = 4});
}

// Positions that would be inside in 32 bits, and the ends of 64 bits.
TEST_F(GpuIndexing, NeverLeavesTheTensor) {
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;
  constexpr std::int64_t kPositions[] = {std::numeric_limits<std::int64_t>::min(),
                                         std::numeric_limits<std::int64_t>::max(),
                                         kWrap + 1,
                                         1 - kWrap,
                                         -1,
                                         3,
                                         1};
  for (const auto out_of_range : {OutOfRange::zero, OutOfRange::clamp}) {
    Graph g;
    const Value x = g.input("x", {3, 64}, f32), index = g.input("index", {7}, i64);
    const Value y = g.apply(Gather{.out_of_range = out_of_range},
                            {{Gather::x, x}, {Gather::index, index}}, {Gather::y});
    g.output("y", y);
    g.output("z",
             g.apply(Scatter{}, {{Scatter::source, y}, {Scatter::index, index}, {Scatter::base, x}},
                     {Scatter::y}));
    for (const CudaEngine* engine : {&gather_engine(), &scatter_engine(), &generic_engine()})
      cuda::expect_agrees(*engine, g, true, 3, support::Fill::plain,
                          Device::named("cuda:0").props(), {}, [&](support::BoundMemory& memory) {
                            std::memcpy(memory.data(index.id()), kPositions, sizeof(kPositions));
                          });
  }
}

TEST_F(GpuIndexing, Elements) { expect_agrees(elements(), "cuda.gather"); }

}  // namespace
}  // namespace ashlar::cuda
