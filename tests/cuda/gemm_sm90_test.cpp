// GEMM on Hopper: every configuration compiles without spills, and small ones agree with the
// oracle.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

// `transposed`: the matrix is column-major.
Value matrix(Graph& graph, const char* name, std::int64_t batches, std::int64_t rows,
             std::int64_t columns, DType dtype, bool transposed) {
  const Dims dims = {batches, rows, columns};
  if (!transposed) return graph.input(name, dims, dtype);
  return graph.transpose(graph.input(name, {batches, columns, rows}, dtype), {0, 2, 1});
}

struct GemmShape {
  std::int64_t batches = 1, rows = 8192, columns = 8192, depth = 8192;
  DType operands = bf16, result = bf16;
  bool transpose_a = false, transpose_b = true;
  bool fused = false;
};

Graph product(const GemmShape& shape) {
  Graph graph;
  const Value a =
      matrix(graph, "a", shape.batches, shape.rows, shape.depth, shape.operands, shape.transpose_a);
  const Value b =
      matrix(graph, "b", 1, shape.depth, shape.columns, shape.operands, shape.transpose_b);
  Value c = graph.matmul(a, b);
  if (shape.fused) {
    const Value bias = graph.input("bias", {1, 1, shape.columns}, f32);
    const Value residual =
        graph.input("residual", {shape.batches, shape.rows, shape.columns}, shape.result);
    c = relu(c + bias) + residual;
  }
  graph.output("c", c, {.dtype = shape.result});
  return graph;
}

class GemmSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(GemmSm90, EveryTileCompilesWithoutSpills) {
  expect_compiles(gemm_sm90_engine(), product({.fused = true}), {kHopper}, true);
}

TEST_F(GemmSm90, RefusesWhatTensorCoresCannotMultiply) {
  const auto refuses = [](const GemmShape& shape) {
    const LoweredGraph lowered = lower(product(shape), true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    return !gemm_sm90_engine().supports(partition(lowered, limits).at(0),
                                        Device::named("h200").props());
  };
  EXPECT_FALSE(refuses({}));
  EXPECT_TRUE(refuses({.operands = f64}));
}

class GpuGemmSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// Several tiles along both axes, the last ones partial; several K-blocks.
TEST_F(GpuGemmSm90, EveryTile) {
  expect_agrees(gemm_sm90_engine(),
                product({.rows = 300, .columns = 264, .depth = 200, .fused = true}), true);
}

TEST_F(GpuGemmSm90, EveryTranspose) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      expect_agrees(gemm_sm90_engine(), product({.batches = 2,
                                                 .rows = 136,
                                                 .columns = 72,
                                                 .depth = 88,
                                                 .transpose_a = transpose_a,
                                                 .transpose_b = transpose_b}));
}

TEST_F(GpuGemmSm90, EveryType) {
  for (const DType dtype : {f16, f32, i8})
    expect_agrees(gemm_sm90_engine(), product({.batches = 3,
                                               .rows = 70,
                                               .columns = 48,
                                               .depth = 144,
                                               .operands = dtype,
                                               .result = f32}));
}

// Pointers that are not multiples of 16 bytes, which TMA does not support.
TEST_F(GpuGemmSm90, AnyPointer) {
  expect_agrees(product({.rows = 70, .columns = 72, .depth = 88, .fused = true}), "cuda.gemm_sm90",
                {.offset = 4});
}

}  // namespace
}  // namespace ashlar::cuda
