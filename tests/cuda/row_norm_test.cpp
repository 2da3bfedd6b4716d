// Norms and softmax over rows as kernel text: the main shapes compile without spills.
#include "cuda/engines/engines.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class RowNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

constexpr const char* kHopper = "sm_90a";

struct Shape {
  std::int64_t rows, length;
  NormMode mode = NormMode::rms;
};
// Hidden layers of language models.
constexpr Shape kShapes[] = {{16384, 4096},  {8192, 8192},  {4096, 16384},
                             {8192, 5120},   {4096, 6144},  {4096, 8192},
                             {8192, 4096},   {2048, 4096},  {131072, 128},
                             {8192, 128},    {16384, 128},  {4096, 2048},
                             {1024, 12288, NormMode::layer}};

Graph forward(const Shape& shape, DType dtype) {
  Graph graph;
  const Value x = graph.input("x", {shape.rows, shape.length}, dtype);
  const Value scale = graph.input("scale", {1, shape.length}, dtype);
  const Value bias =
      shape.mode == NormMode::rms ? Value() : graph.input("bias", {1, shape.length}, dtype);
  const NormResults r = graph.norm(x, scale, bias, {.mode = shape.mode});
  graph.output("y", r.y, {.dtype = dtype});
  if (r.mean) graph.output("mean", r.mean);
  graph.output("inv_variance", r.inv_variance);
  return graph;
}

Graph backward(const Shape& shape, DType dtype) {
  Graph graph;
  const Value x = graph.input("x", {shape.rows, shape.length}, dtype);
  const Value dy = graph.input("dy", {shape.rows, shape.length}, dtype);
  const Value scale = graph.input("scale", {1, shape.length}, dtype);
  const Value mean =
      shape.mode == NormMode::rms ? Value() : graph.input("mean", {shape.rows, 1}, f32);
  const Value inv_variance = graph.input("inv_variance", {shape.rows, 1}, f32);
  const NormGradients r =
      graph.norm_backward(x, dy, scale, {.mode = shape.mode}, mean, inv_variance);
  graph.output("dx", r.dx, {.dtype = dtype});
  graph.output("dscale", r.dscale);
  if (shape.mode != NormMode::rms) graph.output("dbias", r.dbias);
  return graph;
}

TEST_F(RowNorm, Forward) {
  for (const Shape& shape : kShapes)
    expect_compiles(row_norm_engine(), forward(shape, bf16), {kHopper}, std::getenv("ASHLAR_TEST_LONG") != nullptr);
}

TEST_F(RowNorm, Backward) {
  for (const Shape& shape : kShapes)
    expect_compiles(row_norm_engine(), backward(shape, bf16), {kHopper}, std::getenv("ASHLAR_TEST_LONG") != nullptr);
}

}  // namespace
}  // namespace ashlar::cuda
