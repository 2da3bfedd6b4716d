// The wgmma instructions that the host prints for a kernel, and two shapes in one kernel: scores
// S = Q K^T, whose accumulators become the A fragments of O = S V.
#include <gmock/gmock.h>

#include <array>

#include "base/element.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "cuda/tensor_core_kernel.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;

TEST(WgmmaText, NumbersOperands) {
  const std::string text = print_wgmma("Mma", {.a = bf16, .b = f16, .n = 8, .transpose_a = true});
  EXPECT_THAT(text, HasSubstr("struct Mma {\n  typedef float Accum;\n  static const int kN = 8, kK "
                              "= 16;\n"));
  EXPECT_THAT(text, HasSubstr("setp.ne.b32 keeps, %6, 0;\\nwgmma.mma_async.sync.aligned.m64n8k16."
                              "f32.bf16.f16 {%0, %1, %2, %3}, %4, %5, keeps, 1, 1, 1, 0;\\n}\""));
  EXPECT_THAT(text, HasSubstr("setp.ne.b32 keeps, %9, 0;\\nwgmma.mma_async.sync.aligned.m64n8k16."
                              "f32.bf16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, keeps, 1, 1, "
                              "0;\\n}\""));
}
TEST(WgmmaText, IntegersHaveNoScales) {
  const std::string text = print_wgmma("Mma", {.a = u8, .b = i8, .n = 8});
  EXPECT_THAT(text, HasSubstr("typedef int Accum;"));
  EXPECT_THAT(text, HasSubstr("m64n8k32.s32.u8.s8 {%0, %1, %2, %3}, %4, %5, keeps;"));
  EXPECT_THAT(text, HasSubstr("\"+r\"(accum[3])"));
}

constexpr int kRows = 64, kKeys = 128, kHead = 64, kRowBytes = 2 * kHead;

// All operands are rows of 64 elements in shared memory. V is N-major: rows are K.
constexpr const char* kTwoShapesKernel = R"(
struct Args { TensorMap q, k, v; void* out; };
static const int kRows = 64, kKeys = Scores::kN;

extern "C" __global__ void __launch_bounds__(128) kernel(const __grid_constant__ Args args) {
  uint8* start = shared_memory();
  start += (1024 - (uint64)start % 1024) % 1024;
  uint8 *q = start + 1024, *k = q + kRows * 128, *v = k + kKeys * 128;
  Mbarrier* barrier = (Mbarrier*)start;
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_and_expect_tx(barrier, (kRows + 2 * kKeys) * 128);
    load_box<2>(q, args.q, barrier, {0, 0});
    load_box<2>(k, args.k, barrier, {0, 0});
    load_box<2>(v, args.v, barrier, {0, 0});
  }
  wait_for(barrier, 0);
  Scores::Fragment scores;
  Values::Fragment out;
  const uint64 rows = smem_descriptor<128>(q, 0, 1024), keys = smem_descriptor<128>(k, 0, 1024),
               values = smem_descriptor<128>(v, kKeys * 128, 1024);
  fence_operand(scores);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 128 / 32; ++step)
    Scores::multiply(scores, advance_descriptor(rows, step * 32),
                     advance_descriptor(keys, step * 32), step > 0);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  fence_operand(scores);
  uint32 a[kKeys / Values::kK][4];
#pragma unroll
  for (int step = 0; step < kKeys / Values::kK; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[step][i] = pair_to_bf16(scores[8 * step + 2 * i], scores[8 * step + 2 * i + 1]);
  fence_operand(out);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kKeys / Values::kK; ++step)
    Values::multiply(out, a[step], advance_descriptor(values, step * Values::kK * 128), step > 0);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  fence_operand(out);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < Values::kN / 2; ++i)
    ((float*)args.out)[(row + i / 2 % 2 * 8) * Values::kN + i / 4 * 8 + lane % 4 * 2 + i % 2] =
        out[i];
}
)";

std::string two_shapes_text() {
  const std::vector<std::string_view> files = {"lib/ptx_wgmma.cuh", "lib/ptx_tma.cuh",
                                               "lib/ptx_convert.cuh"};
  return assemble(files, print_wgmma("Scores", {.n = kKeys}) +
                             print_wgmma("Values", {.n = kHead, .transpose_b = true})) +
         kTwoShapesKernel;
}

class GpuWgmmaShapes : public HopperTest {};

TEST_F(GpuWgmmaShapes, ScoresTimesValues) {
  // Scores are at most 64: exact as bf16.
  const auto number = [](int line, int i, int seed, int period) {
    return (line * 31 + i * 17 + seed) * 7919 % 101 % period - period / 2;
  };
  const auto make = [&](int lines, int seed, int period) {
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(lines * kRowBytes));
    for (int line = 0; line < lines; ++line)
      for (int i = 0; i < kHead; ++i)
        store_element(bf16, memory.data(), line * kHead + i, number(line, i, seed, period));
    return on_gpu(memory);
  };
  const Memory q = make(kRows, 1, 3), k = make(kKeys, 2, 3), v = make(kKeys, 3, 7);
  const auto map = [&](const Memory& memory, int lines) {
    return map_at({.dtype = bf16,
                   .swizzle = 128,
                   .axes = {{.extent = kHead, .stride = 1, .box = kHead},
                            {.extent = lines, .stride = kHead, .box = lines}}},
                  memory);
  };
  struct Args {
    TensorMapWords q, k, v;
    void* out;
    std::array<std::uint64_t, 7> to_64_bytes{};
  };
  const Memory out = on_gpu(std::vector<float>(kRows * kHead));
  run_kernel({}, two_shapes_text(), {.threads = 128}, 2048 + (kRows + 2 * kKeys) * kRowBytes,
             Args{map(q, kRows), map(k, kKeys), map(v, kKeys), out.data()});
  const auto results = from_gpu<float>(out);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kHead; ++column) {
      int sum = 0;
      for (int key = 0; key < kKeys; ++key) {
        int score = 0;
        for (int i = 0; i < kHead; ++i) score += number(row, i, 1, 3) * number(key, i, 2, 3);
        sum += score * number(key, column, 3, 7);
      }
      ASSERT_EQ(results[static_cast<std::size_t>(row * kHead + column)], static_cast<float>(sum))
          << "row " << row << ", column " << column;
    }
}

TEST(WgmmaText, TwoShapesCompileForHopper) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  const Cubin cubin = compile_cuda("two_shapes", two_shapes_text(), "sm_90a");
  EXPECT_EQ(resources_of(cubin.log).spilled_bytes, 0) << cubin.log;
  // ptxas serialises wgmma where it cannot track their registers.
  EXPECT_EQ(cubin.log.find("are serialized"), std::string::npos) << cubin.log;
}

}  // namespace
}  // namespace ashlar::cuda
