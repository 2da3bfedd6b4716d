// One wgmma per type and layout of its operands in shared memory, loaded by TMA, against a
// reference loop. All values are small integers, so that sums are exact.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "base/element.hpp"
#include "cuda/tensor_core_kernel.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {
namespace {

class GpuWarpgroupMma : public HopperTest {};

struct Problem {
  Wgmma mma;
  int swizzle = 128;
  int a_from = 0;  // first row of A in shared memory, not only at swizzle periods
};

int value(std::int64_t i, bool is_signed) {
  const auto x = static_cast<int>(i * 7919 % 7);
  return is_signed ? x - 3 : x;
}

int bytes_of(DType dtype) { return bit_width(dtype) / 8; }

std::string text_of(const Problem& p) {
  return print_wgmma("Mma", p.mma) + constant("kTransposeA", p.mma.transpose_a) +
         constant("kTransposeB", p.mma.transpose_b) + constant("kBytes", bytes_of(p.mma.a)) +
         constant("kRowBytes", p.swizzle == 0 ? 16 : p.swizzle) + constant("kSwizzle", p.swizzle) +
         constant("kFrom", p.a_from);
}

// Both operands have 128 bytes of K. In shared memory: boxes of kRowBytes of the contiguous axis by
// all of the other one. `out`: D with A from shared memory, then with A from registers, accumulated
// twice.
constexpr const char* kWarpgroupKernel = R"(
struct Args { TensorMap a, b; const void* a_values; void* out; };
static const int kDepth = 128 / kBytes, kBoxLength = kRowBytes / kBytes;
static const int kRows = 64, kLines = kRows + (kFrom + 7) / 8 * 8;

__device__ inline int load(uint8* to, const TensorMap& map, Mbarrier* barrier, int lines,
                           bool transposed) {
  const int boxes = (transposed ? lines : kDepth) / kBoxLength;
  const int box_bytes = (transposed ? kDepth : lines) * kRowBytes;
  for (int i = 0; i < boxes; ++i) {
    const int at[2] = {i * kBoxLength, 0};
    load_box(to + i * box_bytes, map, barrier, at);
  }
  return box_bytes;
}
// Of the 32 bytes of K from step * 32 on.
__device__ inline uint64 factor(uint8* from, int lines, bool transposed, int step) {
  const int box_bytes = (transposed ? kDepth : lines) * kRowBytes;
  if (transposed) {
    const uint8* start = from + step * (32 / kBytes) * kRowBytes;
    // Without a swizzle leading and stride offsets are exchanged.
    return kSwizzle == 0 ? smem_descriptor<kSwizzle>(start, 8 * kRowBytes, box_bytes)
                         : smem_descriptor<kSwizzle>(start, box_bytes, 8 * kRowBytes);
  }
  const int piece = step * 32;
  const uint8* start = from + piece / kRowBytes * box_bytes + piece % kRowBytes;
  return smem_descriptor<kSwizzle>(start, box_bytes, 8 * kRowBytes);
}

extern "C" __global__ void __launch_bounds__(128) kernel(const __grid_constant__ Args args) {
  uint8* start = shared_memory();
  start += (1024 - (uint64)start % 1024) % 1024;
  uint8 *a = start + 1024, *b = a + kLines * 128;
  Mbarrier* barrier = (Mbarrier*)start;
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_and_expect_tx(barrier, (kLines + Mma::kN) * 128);
    load(a, args.a, barrier, kLines, kTransposeA);
    load(b, args.b, barrier, Mma::kN, kTransposeB);
  }
  wait_for(barrier, 0);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
  for (int way = 0; way < 2; ++way) {
    Mma::Fragment sums;
#pragma unroll
    for (int i = 0; i < Mma::kN / 2; ++i) sums[i] = (Mma::Accum)-1000;
    uint32 registers[4][4];
    // Pairs of rows 8 apart, then the second half of K.
#pragma unroll
    for (int step = 0; step < 4; ++step)
      for (int i = 0; i < 4; ++i)
        registers[step][i] = *(const uint32*)((const uint8*)args.a_values +
                                              (row + i % 2 * 8) * 128 + step * 32 +
                                              i / 2 * 16 + lane % 4 * 4);
    fence_operand(sums);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
      Mma::multiply(sums, factor(a + kFrom * kRowBytes, kLines, kTransposeA, step),
                    factor(b, Mma::kN, kTransposeB, step), step > 0);
    if (way == 1)
#pragma unroll
      for (int step = 0; step < 4; ++step)
        Mma::multiply(sums, registers[step], factor(b, Mma::kN, kTransposeB, step), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    fence_operand(sums);
#pragma unroll
    for (int i = 0; i < Mma::kN / 2; ++i)
      ((Mma::Accum*)args.out)[(way * kRows + row + i / 2 % 2 * 8) * Mma::kN + i / 4 * 8 +
                              lane % 4 * 2 + i % 2] = sums[i];
  }
}
)";

void expect_product(const Problem& p) {
  constexpr int kRows = 64;
  const int bytes = bytes_of(p.mma.a), depth = 128 / bytes;
  const int kept = (p.a_from + 7) / 8 * 8;
  const auto make = [&](DType dtype, int lines, bool transposed, int seed, int from = 0) {
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(lines) * 128);
    for (int line = 0; line < lines; ++line)
      for (int k = 0; k < depth; ++k)
        store_element(dtype, memory.data(), transposed ? k * lines + line : line * depth + k,
                      value((line - from) * 101 + k * 13 + seed, dtype != u8));
    if (dtype == f32)  // bits that tf32 does not have
      for (std::size_t i = 0; i < memory.size(); i += 4) memory[i] = 0xff;
    return memory;
  };
  const Memory a = on_gpu(make(p.mma.a, kRows + kept, p.mma.transpose_a, 1, p.a_from)),
               b = on_gpu(make(p.mma.b, p.mma.n, p.mma.transpose_b, 5)),
               rows_of_a = on_gpu(make(p.mma.a, kRows, false, 1));
  const auto map = [&](DType dtype, const Memory& memory, int lines, bool transposed) {
    const int contiguous = transposed ? lines : depth, other = transposed ? depth : lines;
    return map_at({.dtype = dtype,
                   .swizzle = p.swizzle,
                   .axes = {{.extent = contiguous,
                             .stride = 1,
                             .box = (p.swizzle == 0 ? 16 : p.swizzle) / bytes},
                            {.extent = other, .stride = contiguous, .box = other}}},
                  memory);
  };
  struct Args {
    TensorMapWords a, b;
    const void* a_values;
    void* out;
    std::array<std::uint64_t, 6> to_64_bytes{};
  };
  const Memory out =
      on_gpu(std::vector<std::uint32_t>(static_cast<std::size_t>(2 * kRows * p.mma.n)));
  // The files follow the generated header.
  const std::vector<std::string_view> files = {"lib/ptx_wgmma.cuh", "lib/ptx_tma.cuh"};
  run_kernel({}, assemble(files, text_of(p)) + kWarpgroupKernel, {.threads = 128},
             static_cast<unsigned>(2048 + (kRows + kept + p.mma.n) * 128),
             Args{map(p.mma.a, a, kRows + kept, p.mma.transpose_a),
                  map(p.mma.b, b, p.mma.n, p.mma.transpose_b), rows_of_a.data(), out.data()});
  const bool is_integer = p.mma.a == i8 || p.mma.a == u8;
  const auto words = from_gpu<std::uint32_t>(out);
  for (int way = 0; way < 2; ++way)
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < p.mma.n; ++column) {
        int sum = 0;
        for (int k = 0; k < depth; ++k)
          sum += value(row * 101 + k * 13 + 1, p.mma.a != u8) *
                 value(column * 101 + k * 13 + 5, p.mma.b != u8);
        const std::uint32_t word =
            words[static_cast<std::size_t>((way * kRows + row) * p.mma.n + column)];
        ASSERT_EQ(is_integer ? static_cast<float>(std::bit_cast<std::int32_t>(word))
                             : std::bit_cast<float>(word),
                  static_cast<float>((way + 1) * sum))
            << to_string(p.mma.a) << " row " << row << ", column " << column << ", way " << way;
      }
}

TEST_F(GpuWarpgroupMma, EveryType) {
  expect_product({{.a = bf16, .b = bf16, .n = 64}});
  expect_product({{.a = f16, .b = f16, .n = 16}});
  expect_product({{.a = f32, .b = f32, .n = 32}});
  expect_product({{.a = e4m3, .b = e5m2, .n = 96}});
  expect_product({{.a = i8, .b = u8, .n = 8}});
}
TEST_F(GpuWarpgroupMma, ContiguousRows) {
  expect_product({{.a = bf16, .b = bf16, .n = 128, .transpose_a = true, .transpose_b = true}});
  expect_product({{.a = f16, .b = f16, .n = 64, .transpose_a = true}});
  expect_product({{.a = bf16, .b = bf16, .n = 192, .transpose_b = true}});
}
TEST_F(GpuWarpgroupMma, OtherSwizzles) {
  expect_product({.mma = {.a = bf16, .b = bf16, .n = 64, .transpose_b = true}, .swizzle = 64});
  expect_product({.mma = {.a = f16, .b = f16, .n = 32, .transpose_a = true}, .swizzle = 32});
  expect_product({.mma = {.a = e5m2, .b = e5m2, .n = 16}, .swizzle = 64});
  expect_product({.mma = {.a = bf16, .b = bf16, .n = 256, .transpose_b = true}, .swizzle = 0});
  expect_product({.mma = {.a = f32, .b = f32, .n = 64}, .swizzle = 0});
}
// The swizzle is a function of the address: a matrix may begin anywhere in its period.
TEST_F(GpuWarpgroupMma, RowsFromTheMiddle) {
  for (const int from : {1, 3, 8, 13})
    expect_product({.mma = {.a = bf16, .b = bf16, .n = 64}, .a_from = from});
  expect_product({.mma = {.a = f32, .b = f32, .n = 32}, .a_from = 5});
  expect_product(
      {.mma = {.a = bf16, .b = bf16, .n = 64, .transpose_b = true}, .swizzle = 64, .a_from = 7});
  expect_product({.mma = {.a = e4m3, .b = e4m3, .n = 64}, .swizzle = 32, .a_from = 3});
}

}  // namespace
}  // namespace ashlar::cuda
