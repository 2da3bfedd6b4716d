// Kernel launches on a GPU, real or emulated: synchronisation, arguments, capture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <memory>
#include <numeric>
#include <thread>

#include "captured_run.hpp"
#include "cuda/cuda_device.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/loaded_kernel.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar::cuda {
namespace {

class GpuLaunch : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
    context_ = std::make_unique<ContextScope>(0);
  }
  LoadedKernel load(const std::string& text, unsigned shared_bytes = 0) {
    const std::string architecture = architecture_of(detect_gpu(0).compute_capability);
    const KernelSource source{"test", "struct Args { void* x; long long n; };\n" + text};
    return LoadedKernel(0, kernel_images().get(source, architecture)->cubin, "kernel",
                        shared_bytes);
  }
  struct Args {
    const void* x;
    long long n;
  };
  template <class T>
  static void upload(Memory& memory, const std::vector<T>& values) {
    memory.upload(values.data(), memory.bytes());
  }
  template <class T>
  static std::vector<T> download(const Memory& memory) {
    std::vector<T> values(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
    memory.download(values.data(), memory.bytes());
    return values;
  }
  Memory memory_of(std::size_t ints) {
    return Memory(Device::named("cuda:0"), static_cast<std::int64_t>(ints * sizeof(int)));
  }
  std::unique_ptr<ContextScope> context_;
};

TEST_F(GpuLaunch, BuiltInVariables) {
  const LoadedKernel kernel = load(
      "extern \"C\" __global__ void kernel(const __grid_constant__ Args args) {\n"
      "  int* x = (int*)args.x;\n"
      "  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n"
      "  x[block * blockDim.x + threadIdx.x] += block * 1000 + threadIdx.x;\n"
      "}\n");
  std::vector<int> values(2 * 3 * 4 * 40, 7);
  Memory memory = memory_of(values.size());
  upload(memory, values);
  Args args{memory.data(), 0};
  kernel.launch(*context_, nullptr, {.grid = {2, 3, 4}, .threads = 40}, &args);
  for (int i = 0; i < 2 * 3 * 4 * 40; ++i)
    values[static_cast<std::size_t>(i)] += i / 40 * 1000 + i % 40;
  EXPECT_EQ(download<int>(memory), values);
}

// A block reduction: shuffles in each warp, then shared memory; the last warp is partial, and
// threads past the end exit early.
TEST_F(GpuLaunch, BlockReduction) {
  const LoadedKernel kernel = load(
      "extern \"C\" __global__ void __launch_bounds__(256) kernel(const __grid_constant__ Args "
      "args)"
      " {\n"
      "  __shared__ int of_warp[8];\n"
      "  int* x = (int*)args.x + blockIdx.x * 250;\n"
      "  if (threadIdx.x >= args.n) return;\n"
      "  int v = x[threadIdx.x];\n"
      "  for (int by = 16; by > 0; by /= 2) {\n"
      "    const int other = __shfl_down_sync(0xffffffffu, v, by);\n"
      "    if (threadIdx.x + by < args.n) v += other;\n"
      "  }\n"
      "  const unsigned odd = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);\n"
      "  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v + 1000000 * __popc(odd);\n"
      "  __syncthreads();\n"
      "  int sum = 0;\n"
      "  for (int w = 0; w * 32 < args.n; ++w) sum += of_warp[w];\n"
      "  __syncthreads();\n"
      "  x[threadIdx.x] = sum;\n"
      "}\n");
  std::vector<int> values(5 * 250);
  std::iota(values.begin(), values.end(), 1);
  Memory memory = memory_of(values.size());
  upload(memory, values);
  Args args{memory.data(), 250};
  kernel.launch(*context_, nullptr, {.grid = {5, 1, 1}, .threads = 256}, &args);
  for (int b = 0; b < 5; ++b) {
    const auto first = values.begin() + b * 250;
    const int sum = std::accumulate(first, first + 250, 0) + 125 * 1000000;
    std::fill(first, first + 250, sum);
  }
  EXPECT_EQ(download<int>(memory), values);
}

TEST_F(GpuLaunch, SharedMemorySizedAtLaunch) {
  constexpr unsigned kBytes = 100 << 10;  // above the 48 KiB default limit
  const LoadedKernel kernel = load(
      "#if defined(__CUDA_ARCH__)\n"
      "__device__ unsigned char* shared_memory() { extern __shared__ uint4 s[]; return (unsigned "
      "char*)s; }\n"
      "#endif\n"
      "extern \"C\" __global__ void kernel(const __grid_constant__ Args args) {\n"
      "  int *s = (int*)shared_memory(), *x = (int*)args.x;\n"
      "  for (int i = threadIdx.x; i < args.n; i += blockDim.x) s[i] = i;\n"
      "  __syncthreads();\n"
      "  for (int i = threadIdx.x; i < args.n; i += blockDim.x) x[i] = s[args.n - 1 - i];\n"
      "}\n",
      kBytes);
  const std::size_t count = kBytes / sizeof(int);
  const Memory memory = memory_of(count);
  Args args{memory.data(), static_cast<long long>(count)};
  kernel.launch(*context_, nullptr, {.threads = 1024}, &args);
  std::vector<int> expected(count);
  std::iota(expected.rbegin(), expected.rend(), 0);
  EXPECT_EQ(download<int>(memory), expected);
}

// Every CTA sends a value to each CTA of its cluster, in three rounds to static and dynamic shared
// memory, with an mbarrier that counts bytes; in a fourth round by DSMEM stores.
TEST_F(GpuLaunch, BlocksOfAClusterReachEachOther) {
  if (detect_gpu(0).compute_capability / 10 != 9) GTEST_SKIP() << "clusters come with sm_90";
  const LoadedKernel kernel = load(
      assemble("lib/ptx_cluster.cuh", "") +
          "extern \"C\" __global__ void __launch_bounds__(32) kernel(const __grid_constant__ Args "
          "args) {\n"
          "  __shared__ float slots[2][4];\n"
          "  __shared__ Mbarrier signals[2];\n"
          "  float* dynamic = (float*)shared_memory();\n"
          "  if (threadIdx.x < 2) init_barrier(signals + threadIdx.x, 1);\n"
          "  fence_barriers();\n"
          "  cluster_sync_relaxed();\n"
          "  float sum = 0;\n"
          "  const int rank = blockIdx.x % 4, lane = threadIdx.x;\n"
          "  for (int round = 0; round < 3; ++round) {\n"
          "    const int turn = round % 2;\n"
          "    float* here = round == 1 ? dynamic : slots[turn];\n"
          "    if (lane == 0) arrive_and_expect_tx(signals + turn, 16);\n"
          "    if (lane < 4)\n"
          "      store_async_dsmem(here + rank, lane, (float)(blockIdx.x + 10 * lane + 100 * "
          "round),\n"
          "                    signals + turn);\n"
          "    wait_for(signals + turn, round / 2);\n"
          "    for (int r = 0; r < 4; ++r) sum = sum * 2 + here[r];\n"
          "    __syncwarp();\n"  // all lanes have read before others may send the round after next
          "  }\n"
          "  if (lane < 4) store_dsmem(dynamic + 4 + rank, lane, (float)(blockIdx.x + lane));\n"
          "  cluster_sync();\n"
          "  for (int r = 0; r < 4; ++r) sum += dynamic[4 + r];\n"
          "  ((int*)args.x)[blockIdx.x * 32 + lane] = (int)sum;\n"
          "}\n",
      64);
  constexpr int kBlocks = 8, kThreads = 32;
  const Memory memory = memory_of(kBlocks * kThreads);
  Args args{memory.data(), 0};
  kernel.launch(*context_, nullptr, {.grid = {kBlocks}, .threads = kThreads, .cluster = 4}, &args);
  std::vector<int> expected;
  for (int b = 0; b < kBlocks; ++b) {
    int sum = 0;
    for (int round = 0; round < 3; ++round)
      for (int r = 0; r < 4; ++r) sum = sum * 2 + b / 4 * 4 + r + 10 * (b % 4) + 100 * round;
    for (int r = 0; r < 4; ++r) sum += b / 4 * 4 + r + b % 4;
    expected.insert(expected.end(), kThreads, sum);
  }
  EXPECT_EQ(download<int>(memory), expected);
}

TEST_F(GpuLaunch, CaptureFromTheFirstLaunchOn) {
  const LoadedKernel kernel = load(
      "extern \"C\" __global__ void kernel(const __grid_constant__ Args args) {\n"
      "  ((int*)args.x)[threadIdx.x] += args.n;\n"
      "}\n");
  Memory memory = memory_of(32);
  upload(memory, std::vector<int>(32, 0));
  const Stream stream;
  const Executable captured(stream, [&] {
    Args args{memory.data(), 5};
    kernel.launch(*context_, stream.handle(), {.threads = 32}, &args);
    args.n = 100;  // the launch has copied the arguments
  });
  EXPECT_EQ(download<int>(memory), std::vector<int>(32, 0));
  for (int run = 0; run < 3; ++run) captured.launch(stream);
  EXPECT_EQ(download<int>(memory), std::vector<int>(32, 15));
}

// A thread without a context keeps that of device 0 from then on, pushed once; a thread with a
// context keeps its own.
TEST_F(GpuLaunch, ThreadsKeepTheContextTheyHave) {
  const auto pop = [] {
    ContextHandle context = nullptr;
    return driver_api().pop_context(&context) == Result::success ? context : nullptr;
  };
  const auto current = [] {
    ContextHandle context = nullptr;
    check(driver_api().current_context(&context), "");
    return context;
  };
  ContextHandle primary = nullptr;
  check(driver_api().retain_primary_context(&primary, 0), "");
  std::thread([&] {
    EXPECT_EQ(current(), nullptr);
    for (int time = 0; time < 2; ++time) {
      const ContextScope scope(0);
      EXPECT_TRUE(scope.is_primary());
      EXPECT_EQ(current(), primary);
    }
    EXPECT_EQ(current(), primary);
    EXPECT_EQ(pop(), primary);
    EXPECT_EQ(current(), nullptr);

    check(driver_api().push_context(primary), "");
    {
      const ContextScope scope(0);
      EXPECT_TRUE(scope.is_primary());
    }
    EXPECT_EQ(pop(), primary);
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST_F(GpuLaunch, LaunchesThatCannotBeNameTheirKernel) {
  const LoadedKernel kernel =
      load("extern \"C\" __global__ void kernel(const __grid_constant__ Args args) {}\n");
  Args args{};
  try {
    kernel.launch(*context_, nullptr, {.threads = 2000}, &args);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), testing::HasSubstr("launching kernel 'kernel' (1 x 1 x 1 blocks of "
                                                 "2000 threads)"));
  }
}

}  // namespace
}  // namespace ashlar::cuda
