// cuda.gemm_sm90 on 8-bit operands: kernels of the main shapes compile without spills, and small
// ones agree with the oracle.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

// a [m, k] times the transpose of b [n, k]: both K-major.
Graph product(DType a, DType b, DType c, std::int64_t m, std::int64_t n, std::int64_t k,
              std::optional<DType> compute = {}) {
  Graph g;
  const Value right = g.transpose(g.input("b", {n, k}, b), {1, 0});
  Value result = g.matmul(g.input("a", {m, k}, a), right, {.dtype = f32, .compute = compute});
  if (c != f32) result = result * g.input("scale", {1, n}, f32);
  g.output("c", result, {.dtype = c});
  return g;
}

class GemmSm90Narrow : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(GemmSm90Narrow, Fp8) {
  expect_compiles(gemm_sm90_engine(), product(e4m3, e5m2, bf16, 4096, 4096, 4096), {"sm_90a"});
}
TEST_F(GemmSm90Narrow, Int8) {
  expect_compiles(gemm_sm90_engine(), product(i8, i8, bf16, 4096, 4096, 4096), {"sm_90a"});
}

class GpuGemmSm90Narrow : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(GpuGemmSm90Narrow, Fp8InAllPairs) {
  for (const DType a : {e4m3, e5m2})
    for (const DType b : {e4m3, e5m2})
      expect_agrees(gemm_sm90_engine(), product(a, b, bf16, 100, 72, 304));
}
TEST_F(GpuGemmSm90Narrow, Fp8InAllTiles) {
  expect_agrees(gemm_sm90_engine(), product(e4m3, e4m3, f32, 136, 72, 272), true);
}
TEST_F(GpuGemmSm90Narrow, Int8IsExact) {
  expect_agrees(gemm_sm90_engine(), product(i8, i8, f32, 100, 136, 272));
  expect_agrees(gemm_sm90_engine(), product(i8, i8, bf16, 70, 40, 144));
}

}  // namespace
}  // namespace ashlar::cuda
