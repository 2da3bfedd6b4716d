// Errors that the emulated GPU detects and a real one does not report. Skipped on a real GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/element.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/loaded_kernel.hpp"
#include "cuda/gpu_check.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;

struct TestArgs {
  const void* x;
  long long n;
};

// Runs a kernel with this body on `memory`, one CTA.
void run(const std::string& body, const Memory& memory, unsigned threads = 64,
         unsigned shared_bytes = 0) {
  const std::string text = "struct Args { void* x; long long n; };\n" + body;
  const ContextScope scope(0);
  const std::string architecture = architecture_of(detect_gpu(0).compute_capability);
  const LoadedKernel kernel(0, kernel_images().get({"test", text}, architecture)->cubin, "kernel",
                            shared_bytes);
  TestArgs args{memory.data(), memory.bytes() / 4};
  kernel.launch(scope, nullptr, {.threads = threads}, &args);
  Device::named("cuda:0").synchronize();
}
std::string kernel(const std::string& lines) {
  return "extern \"C\" __global__ void __launch_bounds__(64) kernel(const __grid_constant__ Args "
         "args) {\n  float* x = (float*)args.x;\n" +
         lines + "}\n";
}

class GpuEmulator : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && detect_gpu(0).description.find("Emulated") == std::string::npos)
      GTEST_SKIP() << "a real GPU";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  static Memory memory_of(std::int64_t floats) {
    return Memory(Device::named("cuda:0"), floats * 4);
  }
  // Expects the launch to fail; the emulator prints the reason to stderr.
  static void expect_failure(const std::function<void()>& launch, const std::string& said) {
    testing::internal::CaptureStderr();
    EXPECT_THROW(launch(), Error);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(said));
  }
};

TEST_F(GpuEmulator, Deadlock) {
  const Memory memory = memory_of(64);
  expect_failure(
      [&] {
        run(kernel("  if (threadIdx.x < 32) __syncwarp(); else if (threadIdx.x > 40) "
                   "__shfl_sync(~0u, x[0], 0); else __syncthreads();\n"),
            memory);
      },
      "deadlock, all threads wait");
  // The GPU stays usable.
  run(kernel("  __syncthreads(); x[threadIdx.x] = 1;\n"), memory);
}

// cp.async data arrives as late as allowed: when its group is waited for.
TEST_F(GpuEmulator, UnawaitedCopies) {
  const Memory memory = memory_of(64);
  run(assemble("lib/ptx_cp_async.cuh", "") +
          kernel("  float* to = (float*)shared_memory() + 4 * threadIdx.x;\n"
                 "  float* own = x + 4 * threadIdx.x;\n"
                 "  own[0] = own[1] = own[2] = own[3] = 7;\n"
                 "  to[0] = 1;\n"
                 "  cp_async<16>(to, own);\n"
                 "  cp_async_wait_group<0>();\n"
                 "  own[1] = to[0];  // no group yet\n"
                 "  cp_async_commit_group();\n"
                 "  cp_async_wait_group<1>();\n"
                 "  own[2] = to[0];  // one group may be in flight\n"
                 "  cp_async_wait_group<0>();\n"
                 "  own[3] = to[0];\n"),
      memory, 16, 256);
  std::vector<float> seen(64);
  memory.download(seen.data(), memory.bytes());
  for (std::size_t i = 0; i < 64; i += 4) {
    EXPECT_EQ(seen[i + 1], 1.f);
    EXPECT_EQ(seen[i + 2], 1.f);
    EXPECT_EQ(seen[i + 3], 7.f);
  }
}

TEST_F(GpuEmulator, MismatchedWarpCollectives) {
  const Memory memory = memory_of(64);
  expect_failure(
      [&] {
        run(kernel("  if (threadIdx.x & 1) __syncwarp(); else __ballot_sync(~0u, 1);\n"), memory);
      },
      "different collectives or use different masks");
}

TEST_F(GpuEmulator, WritesOutsideOfMemory) {
  EXPECT_DEATH(
      {
        const Memory memory = memory_of(63);
        try {
          run(kernel("  x[threadIdx.x] = 1;\n"), memory);
        } catch (const Error&) {
        }
      },
      "kernel 'kernel': the allocation of 252 bytes at .* was overrun");
}

TEST_F(GpuEmulator, WritesOutsideOfSharedMemory) {
  const Memory memory = memory_of(64);
  expect_failure(
      [&] { run(kernel("  ((float*)shared_memory())[threadIdx.x] = 1;\n"), memory, 64, 240); },
      "shared memory of 240 bytes was overrun");
}

TEST_F(GpuEmulator, MoreThreadsThanLaunchBounds) {
  const Memory memory = memory_of(64);
  EXPECT_THROW(run(kernel(""), memory, 65), Error);
}

// Global and shared memory are poisoned, not zeroed.
TEST_F(GpuEmulator, MemoryIsPoisoned) {
  const Memory memory = memory_of(64);
  run(kernel("  __shared__ float s[64];\n"
             "  if (args.n < 0) s[threadIdx.x] = x[threadIdx.x];\n"
             "  if (threadIdx.x < 32) x[threadIdx.x] = s[threadIdx.x];\n"),
      memory);
  std::vector<float> values(64);
  memory.download(values.data(), memory.bytes());
  EXPECT_TRUE(std::isnan(values[31]));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[32]), 0xcbcbcbcbu);
}

// A product of zeros with A in registers. `in_flight` runs between wgmma.commit_group and the wait.
std::string wgmma_kernel(const std::string& in_flight) {
  return assemble("lib/ptx_wgmma.cuh", print_wgmma("Mma", {.n = 8})) +
         "extern \"C\" __global__ void __launch_bounds__(128) kernel(const __grid_constant__ Args "
         "args) {\n"
         "  float* x = (float*)args.x;\n"
         "  uint8* const matrix = aligned_shared_memory();\n"
         "  matrix[threadIdx.x] = matrix[threadIdx.x + 128] = 0;\n"
         "  __syncthreads();\n"
         "  uint32 a[4] = {0, 0, 0, 0};\n"
         "  Mma::Fragment accum = {1, 1, 1, 1};\n"
         "  for (int i = 0; i < 2; ++i)\n"
         "    Mma::multiply(accum, a, smem_descriptor<0>(matrix, 128, 128), true);\n"
         "  wgmma_commit_group();\n" +
         in_flight +
         "  wgmma_wait_group<0>();\n"
         "  if (args.n > 64) x[threadIdx.x] = accum[0];\n}\n";
}

// Registers of wgmma in flight: accumulators are NaN until the thread has waited for their group,
// and neither they nor A may be changed.
TEST_F(GpuEmulator, UnawaitedWgmma) {
  const Memory memory = memory_of(128);
  const auto first_after = [&](const std::string& in_flight) {
    run(wgmma_kernel(in_flight), memory, 128, 2048);
    std::vector<float> values(128);
    memory.download(values.data(), memory.bytes());
    return values[77];
  };
  EXPECT_EQ(first_after(""), 1.f);
  const Memory few = memory_of(64);
  for (const bool waits : {false, true}) {
    const std::string wait = waits ? "  wgmma_wait_group<0>();\n" : "  wgmma_wait_group<1>();\n";
    run(wgmma_kernel(wait + "  if (threadIdx.x < 64) x[threadIdx.x] = accum[3];\n"), few, 128,
        2048);
    std::vector<float> values(64);
    few.download(values.data(), few.bytes());
    EXPECT_EQ(std::isnan(values[33]), !waits);
  }
  expect_failure([&] { first_after("  accum[1] = 2;\n"); }, "accumulators were changed before");
  expect_failure([&] { first_after("  a[2] = 7;\n"); }, "registers of A were changed before");
}

// A warpgroup that releases shared memory before its wgmma have read it, and a warp that loads to
// it.
TEST_F(GpuEmulator, EarlyRelease) {
  const auto text = [](const std::string& release, const std::string& late_release) {
    constexpr std::array<std::string_view, 2> kFiles = {"lib/ptx_wgmma.cuh", "lib/ptx_tma.cuh"};
    return assemble(kFiles, print_wgmma("Mma", {.n = 8})) +
           "extern \"C\" __global__ void __launch_bounds__(160) kernel(const __grid_constant__ "
           "Args "
           "args) {\n"
           "  uint8* const matrix = aligned_shared_memory();\n"
           "  Mbarrier* const barriers = (Mbarrier*)(matrix + 256);\n"
           "  if (threadIdx.x == 0) {\n"
           "    init_barrier(barriers, 4);\n"
           "    init_barrier(barriers + 1, 1);\n"
           "    fence_barriers();\n"
           "  }\n"
           "  __syncthreads();\n"
           "  if (threadIdx.x < 128) {\n"
           "    uint32 a[4] = {0, 0, 0, 0};\n"
           "    Mma::Fragment accum;\n"
           "    Mma::multiply(accum, a, smem_descriptor<0>(matrix, 128, 128), false);\n"
           "    wgmma_commit_group();\n" +
           release + "    wgmma_wait_group<0>();\n" + late_release +
           "  } else {\n"
           "    wait_for(barriers, 0);\n"
           "    if (threadIdx.x == 128) arrive_and_expect_tx(barriers + 1, 256);\n"
           "    load_bytes(matrix, args.x, 256, barriers + 1);\n"
           "  }\n"
           "  wait_for(barriers + 1, 0);\n}\n";
  };
  const std::string release = "    if (threadIdx.x % 32 == 0) arrive(barriers);\n";
  const Memory memory = memory_of(64);
  run(text("", release), memory, 160, 2048);
  expect_failure([&] { run(text(release, ""), memory, 160, 2048); },
                 "a copy overwrites shared memory that an outstanding wgmma still reads");
}

class GpuConvert : public GpuTest {};

std::string lines_of(std::string_view file) {
  std::string text;
  for (const KernelFile& one : kernel_files())
    if (one.name == file) text = one.text;
  for (const std::string_view word : {"#pragma", "#include"})
    for (std::size_t at = 0; (at = text.find(word)) != std::string::npos;)
      text.erase(at, text.find('\n', at) - at);
  return text;
}

// Every f16 to f32 and back: from the value, from the midpoint to the next one, and from both
// neighbours of the midpoint.
TEST_F(GpuConvert, EveryHalf) {
  constexpr int kHalves = 1 << 16;
  Memory memory(Device::named("cuda:0"), 4 * kHalves * 5);
  run(lines_of("lib/integers.cuh") + lines_of("lib/small_floats.cuh") +
          lines_of("lib/ptx_convert.cuh") +
          "extern \"C\" __global__ void kernel(const __grid_constant__ Args args) {\n"
          "  float* wide = (float*)args.x;\n"
          "  uint32* back = (uint32*)args.x + 65536;\n"
          "  for (int i = threadIdx.x; i < 65536; i += blockDim.x) {\n"
          "    wide[i] = f16_to_float((uint16)i);\n"
          "    const float half = i + 1 & 0x7fff ? 0.5f * wide[i] + 0.5f * f16_to_float((uint16)(i "
          "+ 1))"
          " : wide[i];\n"
          "    const uint32 bits = __float_as_uint(half);\n"
          "    back[i] = float_to_f16(wide[i]);\n"
          "    back[i + 65536] = float_to_f16(half);\n"
          "    back[i + 2 * 65536] = float_to_f16(__uint_as_float(bits + 1));\n"
          "    back[i + 3 * 65536] = float_to_f16(__uint_as_float(bits - 1));\n"
          "  }\n}\n",
      memory, 1024);
  std::vector<std::uint32_t> words(5 * kHalves);
  memory.download(words.data(), memory.bytes());
  const auto rounded = [](float value) {
    std::uint16_t half = 0;
    store_element(f16, &half, 0, static_cast<double>(value));
    return half;
  };
  for (std::uint32_t i = 0; i < kHalves; ++i) {
    const auto own = static_cast<std::uint16_t>(i), above = static_cast<std::uint16_t>(i + 1);
    const auto wide = static_cast<float>(load_element(f16, &own, 0));
    if (std::isnan(wide) || (i & 0x7fff) >= 0x7bff) continue;  // the largest value has no successor
    ASSERT_EQ(words[i], std::bit_cast<std::uint32_t>(wide)) << i;
    const auto half = ((i + 1) & 0x7fff) != 0
                          ? 0.5f * wide + 0.5f * static_cast<float>(load_element(f16, &above, 0))
                          : wide;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(half);
    ASSERT_EQ(words[i + kHalves], i);
    ASSERT_EQ(words[i + 2 * kHalves], rounded(half)) << i;
    ASSERT_EQ(words[i + 3 * kHalves], rounded(std::bit_cast<float>(bits + 1))) << i;
    if (bits != 0) {
      ASSERT_EQ(words[i + 4 * kHalves], rounded(std::bit_cast<float>(bits - 1))) << i;
    }
  }
}

}  // namespace
}  // namespace ashlar::cuda
