// Pipelines between producers and consumers (lib/pipeline.cuh), and TMA stores of the boxes that
// attention needs, by small kernels.
#include <gtest/gtest.h>

#include <array>

#include "cuda/tensor_core_kernel.hpp"

namespace ashlar::cuda {
namespace {

class GpuPipeline : public HopperTest {};

// 20 rounds of a producer warp, whose lanes all commit, and a consumer warp.
TEST_F(GpuPipeline, ThreeStages) {
  constexpr int kRounds = 20;
  struct Args {
    void* out;
  };
  const Memory out = on_gpu(std::vector<int>(kRounds * 32, -1));
  run_kernel({"lib/pipeline.cuh"},
             "struct Args { void* out; };\n"
             "extern \"C\" __global__ void __launch_bounds__(64) kernel(const __grid_constant__ "
             "Args args) {\n"
             "  __shared__ Mbarrier barriers[Pipeline<3>::kBarriers];\n"
             "  __shared__ uint8 stages[3 * 128];\n"
             "  const int lane = threadIdx.x % 32;\n"
             "  BufferPipeline<3, 128> pipeline;\n"
             "  pipeline.begin(stages, barriers);\n"
             "  if (threadIdx.x == 0) {\n"
             "    pipeline.init(32, 1);\n"
             "    fence_barriers();\n"
             "  }\n"
             "  __syncthreads();\n"
             "  for (int round = 0; round < 20; ++round, pipeline.next()) {\n"
             "    int* numbers = (int*)pipeline.buffer();\n"
             "    if (threadIdx.x < 32) {\n"
             "      pipeline.producer_acquire();\n"
             "      numbers[lane] = 100 * round + lane;\n"
             "      pipeline.producer_commit();\n"
             "    } else {\n"
             "      pipeline.consumer_wait();\n"
             "      ((int*)args.out)[round * 32 + lane] = numbers[31 - lane];\n"
             "      __syncwarp();\n"
             "      pipeline.consumer_release(pipeline.stage);\n"
             "    }\n"
             "  }\n"
             "}\n",
             {.threads = 64}, 0, Args{out.data()});
  const auto values = from_gpu<int>(out);
  for (int round = 0; round < kRounds; ++round)
    for (int lane = 0; lane < 32; ++lane)
      ASSERT_EQ(values[static_cast<std::size_t>(round * 32 + lane)], 100 * round + 31 - lane);
}

// Rows of one head of a tensor (batch, row, head, 16 bytes), as attention stores its results; the
// last ones are out of bounds.
TEST_F(GpuPipeline, StoresBoxesOfFourAxes) {
  constexpr int kWidth = 16, kHeads = 3, kRows = 5, kBatches = 2, kBoxRows = 4, kFirst = 3;
  struct Args {
    TensorMapWords map;
    int bytes;
    std::array<int, 4> at;
    std::array<int, 11> to_64_bytes{};
  };
  const Memory memory = on_gpu(std::vector<std::uint8_t>(kWidth * kHeads * kRows * kBatches));
  const TensorMapForm form{.dtype = u8,
                           .swizzle = 0,
                           .axes = {{.extent = kWidth, .stride = 1, .box = kWidth},
                                    {.extent = kHeads, .stride = kWidth, .box = 1},
                                    {.extent = kRows, .stride = kWidth * kHeads, .box = kBoxRows},
                                    {.extent = kBatches, .stride = kWidth * kHeads * kRows}}};
  run_kernel({"lib/ptx_tma.cuh"},
             "struct Args { TensorMap map; int bytes, at[4]; };\n"
             "extern \"C\" __global__ void __launch_bounds__(32) kernel(const __grid_constant__ "
             "Args args) {\n"
             "  uint8* box = aligned_shared_memory();\n"
             "  for (int i = threadIdx.x; i < args.bytes; i += 32) box[i] = (uint8)(1 + i);\n"
             "  fence_proxy_async();\n"
             "  __syncwarp();\n"
             "  if (threadIdx.x == 0) {\n"
             "    store_box<4>(args.map, box, {args.at[0], args.at[1], args.at[2], args.at[3]});\n"
             "    tma_store_commit_group();\n"
             "    tma_store_wait_read<0>();\n"
             "  }\n"
             "}\n",
             {.threads = 32}, 2048,
             Args{map_at(form, memory), kBoxRows * kWidth, {0, 2, kFirst, 1}});
  const auto values = from_gpu<std::uint8_t>(memory);
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const int byte = i % kWidth, head = i / kWidth % kHeads, row = i / kWidth / kHeads % kRows,
              batch = i / kWidth / kHeads / kRows;
    const bool is_stored = head == 2 && row >= kFirst && batch == 1;
    ASSERT_EQ(values[static_cast<std::size_t>(i)],
              is_stored ? 1 + (row - kFirst) * kWidth + byte : 0)
        << i;
  }
}

}  // namespace
}  // namespace ashlar::cuda
