// One mma.sync per type, with operands loaded by ldmatrix, against a reference loop. All values are
// small integers, so that sums are exact.
#include <gtest/gtest.h>

#include <array>

#include "base/element.hpp"
#include "cuda/tensor_core_kernel.hpp"

namespace ashlar::cuda {
namespace {

class GpuWarpMma : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && detect_gpu(0).compute_capability < 80) GTEST_SKIP() << "before sm_80";
  }
};

// A of 16 rows, B of 8 columns, 32 bytes of K each; then B of the last mma again, 16 rows of 8.
// `out`: 16 x 8 results of each mma.
constexpr int kProducts = 6, kBytesOfA = 16 * 32, kBytesOfB = 8 * 32;
constexpr const char* kKernel = R"(
struct Args { const void* x; void* y; };
extern "C" __global__ void __launch_bounds__(32) kernel(const __grid_constant__ Args args) {
  __shared__ alignas(16) uint8 shared[16 * 32 + 8 * 32];
  uint8 *shared_a = shared, *shared_b = shared + 16 * 32;
  const int lane = threadIdx.x;
  for (int product = 0; product < 6; ++product) {
    const uint8* from = (const uint8*)args.x + product * sizeof(shared);
    __syncwarp();
    for (int i = lane; i < (int)sizeof(shared); i += 32) shared[i] = from[i];
    __syncwarp();
    uint32 a[4], b[2];
    ldmatrix<false>(a, shared_a + lane % 16 * 32 + lane / 16 * 16);
    if (product < 5)
      ldmatrix<false>(b, shared_b + lane % 8 * 32 + lane / 8 % 2 * 16);
    else  // 16 rows of 8 values of 16 bits
      ldmatrix<true>(b, shared_b + lane % 16 * 16);
    float sums[4] = {1, 2, 3, 4};
    int whole[4] = {1, 2, 3, 4};
    double wide[4] = {1, 2, 3, 4};
    if (product == 0) multiply_add(bf16(), sums, a, b);
    if (product == 1) multiply_add(f16(), sums, a, b);
    if (product == 2) multiply_add(f32(), sums, a, b);
    if (product == 3) multiply_add(i8(), u8(), whole, a, b);
    if (product == 4) {
      const double column[2] = {((const double*)shared_a)[lane / 4 * 4 + lane % 4],
                                ((const double*)shared_a)[(lane / 4 + 8) * 4 + lane % 4]};
      multiply_add(f64(), wide, column, ((const double*)shared_b)[lane / 4 * 4 + lane % 4]);
    }
    if (product == 5) multiply_add(f16(), sums, a, b);
    double* to = (double*)args.y + product * 128;
    for (int i = 0; i < 4; ++i)
      to[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] =
          product == 3 ? (double)whole[i] : product == 4 ? wide[i] : (double)sums[i];
  }
}
)";

int value(int line, int k, int product, bool is_signed) {
  const int x = (line * 5 + k * 3 + line * k + product) % 7;
  return is_signed ? x - 3 : x;
}

TEST_F(GpuWarpMma, EveryType) {
  constexpr std::array<DType, kProducts> kTypes = {bf16, f16, f32, i8, f64, f16};
  std::vector<std::uint8_t> values(kProducts * (kBytesOfA + kBytesOfB));
  for (int product = 0; product < kProducts; ++product) {
    const DType type = kTypes[static_cast<std::size_t>(product)];
    const int depth = 256 / static_cast<int>(bit_width(type));
    std::uint8_t* a = values.data() + product * (kBytesOfA + kBytesOfB);
    for (int k = 0; k < depth; ++k) {
      for (int row = 0; row < 16; ++row)
        store_element(type, a, row * depth + k, value(row, k, product, true));
      for (int column = 0; column < 8; ++column)
        store_element(type == i8 ? u8 : type, a + kBytesOfA,
                      product == 5 ? k * 8 + column : column * depth + k,
                      value(column, k, product + 2, type != i8));
    }
  }
  const Memory x = on_gpu(values), y = on_gpu(std::vector<double>(kProducts * 128));
  struct Args {
    const void* x;
    void* y;
  };
  run_kernel({"lib/ptx_mma.cuh", "lib/ptx_mma_exact.cuh", "lib/ptx_ldmatrix.cuh"}, kKernel,
             {.threads = 32}, 0, Args{x.data(), y.data()});
  const auto sums = from_gpu<double>(y);
  for (int product = 0; product < kProducts; ++product) {
    const DType type = kTypes[static_cast<std::size_t>(product)];
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 1 + column % 2 + row / 8 * 2;  // initial accumulator
        for (int k = 0; k < 256 / static_cast<int>(bit_width(type)); ++k)
          sum += value(row, k, product, true) * value(column, k, product + 2, type != i8);
        ASSERT_EQ(sums[static_cast<std::size_t>(product * 128 + row * 8 + column)], sum)
            << "product " << product << ", row " << row << ", column " << column;
      }
  }
}

}  // namespace
}  // namespace ashlar::cuda
