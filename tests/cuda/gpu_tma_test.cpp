// TMA and mbarriers as documented by PTX: on a real GPU these tests validate the emulator.
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "cuda/tensor_core_kernel.hpp"

namespace ashlar::cuda {
namespace {

class GpuTma : public HopperTest {};

// Never 0, which is the fill value out of bounds.
std::uint8_t some_byte(std::int64_t i) { return static_cast<std::uint8_t>(1 + i * 37 % 251); }

struct CopyArgs {
  TensorMapWords map;
  void* out;
  int shared_offset;  // relative to a multiple of 1024
  int bytes;
  std::array<int, 5> at;
  std::array<int, 3> tap;
  std::array<int, 4> to_64_bytes{};
};
// One TMA load to shared memory, whose bytes are dumped to `out`.
std::string copy_text(int rank, const std::string& call) {
  const std::string count = std::to_string(rank);
  return "struct Args { TensorMap map; void* out; int shared_offset, bytes; int at[5]; int tap[3]; "
         "};\n"
         "extern \"C\" __global__ void __launch_bounds__(32) kernel(const __grid_constant__ Args "
         "args) {\n"
         "  uint8* start = shared_memory();\n"
         "  start += (1024 - (uint64)start % 1024) % 1024;\n"
         "  Mbarrier* barrier = (Mbarrier*)start;\n"
         "  uint8* box = start + args.shared_offset;\n"
         "  if (threadIdx.x == 0) {\n"
         "    init_barrier(barrier, 1);\n"
         "    fence_barriers();\n"
         "  }\n"
         "  __syncthreads();\n"
         "  if (threadIdx.x == 0) {\n"
         "    int at[" +
         count +
         "];\n"
         "    for (int i = 0; i < " +
         count +
         "; ++i) at[i] = args.at[i];\n"
         "    arrive_and_expect_tx(barrier, args.bytes);\n    " +
         call +
         "\n  }\n"
         "  wait_for(barrier, 0);\n"
         "  for (int i = threadIdx.x; i < args.bytes; i += 32) ((uint8*)args.out)[i] = box[i];\n"
         "}\n";
}
std::vector<std::uint8_t> copy_box(const TensorMapForm& form, const Memory& from, int bytes,
                                   std::array<int, 5> at, int shared_offset = 1024) {
  const Memory out = on_gpu(std::vector<std::uint8_t>(static_cast<std::size_t>(bytes), 0xee));
  run_kernel({"lib/ptx_tma.cuh"},
             copy_text(static_cast<int>(form.axes.size()), "load_box(box, args.map, barrier, at);"),
             {.threads = 32}, static_cast<unsigned>(bytes) + 4096,
             CopyArgs{map_at(form, from), out.data(), shared_offset, bytes, at, {}});
  return from_gpu<std::uint8_t>(out);
}

// A box past the last row. Its shared-memory address is not a multiple of the swizzle pattern, to
// show that the swizzle applies to addresses.
TEST_F(GpuTma, EverySwizzle) {
  constexpr int kRows = 24, kBoxRows = 16, kFirstRow = 11;
  for (const int swizzle : {0, 32, 64, 128}) {
    const int width = swizzle == 0 ? 48 : swizzle, row_bytes = 2 * width;
    std::vector<std::uint8_t> values;
    for (int i = 0; i < kRows * row_bytes; ++i) values.push_back(some_byte(i));
    const Memory memory = on_gpu(values);
    const int offset = 1024 + 3 * 128;
    const auto shared =
        copy_box({.dtype = u8,
                  .swizzle = swizzle,
                  .axes = {{.extent = row_bytes, .stride = 1, .box = width},
                           {.extent = kRows, .stride = row_bytes, .box = kBoxRows}}},
                 memory, kBoxRows * width, {width, kFirstRow}, offset);
    for (int row = 0; row < kBoxRows; ++row)
      for (int byte = 0; byte < width; ++byte) {
        const int place = offset + row * width + byte;
        const int pieces = swizzle / 16,
                  moved = pieces > 0 ? place ^ place / 128 % pieces * 16 : place;
        const int in_tensor = kFirstRow + row;
        const int wanted =
            in_tensor < kRows
                ? values[static_cast<std::size_t>(in_tensor * row_bytes + width + byte)]
                : 0;
        ASSERT_EQ(shared[static_cast<std::size_t>(moved - offset)], wanted)
            << "swizzle " << swizzle << ", row " << row << ", byte " << byte;
      }
  }
}

TEST_F(GpuTma, RoundsToTf32) {
  const std::vector<std::uint32_t> words = {0x3f800000u, 0x3f801000u, 0x3f803000u, 0x3f800fffu,
                                            0x3f801001u, 0xbfffffffu, 0x7f800000u, 0x00000000u};
  const Memory memory = on_gpu(words);
  const auto bytes = copy_box(
      {.dtype = f32,
       .rounds_to_tf32 = true,
       .swizzle = 0,
       .axes = {{.extent = 8, .stride = 1, .box = 8}, {.extent = 1, .stride = 8, .box = 1}}},
      memory, 32, {0, 0});
  const std::vector<std::uint32_t> wanted = {0x3f800000u, 0x3f800000u, 0x3f804000u, 0x3f800000u,
                                             0x3f802000u, 0xc0000000u, 0x7f800000u, 0x00000000u};
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + 4 * i, 4);
    EXPECT_EQ(word, wanted[i]) << i;
  }
}

// Boxes of a 16 x 9 x 7 tensor of bytes that start out of bounds, or have element strides.
void expect_box(const std::array<int, 3>& at, const std::array<int, 3>& box,
                const std::array<int, 3>& step) {
  constexpr int kC = 16, kX = 9, kY = 7;
  std::vector<std::uint8_t> values;
  for (int i = 0; i < kC * kX * kY; ++i) values.push_back(some_byte(i));
  const Memory memory = on_gpu(values);
  const int columns = (box[1] + step[1] - 1) / step[1], rows = (box[2] + step[2] - 1) / step[2];
  const auto shared =
      copy_box({.dtype = u8,
                .swizzle = 0,
                .axes = {{.extent = kC, .stride = 1, .box = 16},
                         {.extent = kX, .stride = kC, .box = box[1], .step = step[1]},
                         {.extent = kY, .stride = kC * kX, .box = box[2], .step = step[2]}}},
               memory, 16 * columns * rows, {at[0], at[1], at[2]});
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      for (int c = 0; c < 16; ++c) {
        const int tc = c + at[0], tx = step[1] * x + at[1], ty = step[2] * y + at[2];
        const bool exists = tc >= 0 && tc < kC && tx >= 0 && tx < kX && ty >= 0 && ty < kY;
        ASSERT_EQ(shared[static_cast<std::size_t>((y * columns + x) * 16 + c)],
                  exists ? values[static_cast<std::size_t>((ty * kX + tx) * kC + tc)] : 0)
            << y << ' ' << x << ' ' << c;
      }
}
TEST_F(GpuTma, CornersOutside) {
  expect_box({0, -2, -3}, {16, 4, 5}, {1, 1, 1});
  expect_box({0, 7, 5}, {16, 4, 5}, {1, 1, 1});
}

// TMA im2col of 1 to 3 spatial axes against a reference loop: strides, padding and dilation that
// differ per axis, across images and past the last one.
struct Axis {
  int extent, window, pad_before, pad_after, stride, dilation;
  int outputs() const {
    return (extent + pad_before + pad_after - dilation * (window - 1) - 1) / stride + 1;
  }
};
void expect_pixels(const std::vector<Axis>& axes) {  // W, H, D
  constexpr int kChannels = 48, kBox = 32, kImages = 3, kPixels = 24, kFirstChannel = 32;
  const auto spatial = axes.size();
  TensorMapForm form{.dtype = u8,
                     .swizzle = 32,
                     .axes = {{.extent = kChannels, .stride = 1, .box = kBox}},
                     .pixels = kPixels};
  std::int64_t elements = kChannels, outputs = 1;
  for (const Axis& axis : axes) {
    form.axes.push_back({.extent = axis.extent,
                         .stride = elements,
                         .step = axis.stride,
                         .lower = -axis.pad_before,
                         .upper = axis.pad_after - axis.dilation * (axis.window - 1)});
    elements *= axis.extent;
    outputs *= axis.outputs();
  }
  form.axes.push_back({.extent = kImages, .stride = elements});
  std::vector<std::uint8_t> values;
  for (std::int64_t i = 0; i < elements * kImages; ++i) values.push_back(some_byte(i));
  const Memory memory = on_gpu(values);
  const std::string text = copy_text(
      static_cast<int>(spatial) + 2,
      "int tap[" + std::to_string(spatial) + "];\n    for (int i = 0; i < " +
          std::to_string(spatial) +
          "; ++i) tap[i] = args.tap[i];\n    load_im2col(box, args.map, barrier, at, tap);");
  const TensorMapWords map = map_at(form, memory);
  // Corner of output `pixel` in its image, before the filter offset.
  const auto corner_of = [&](std::int64_t pixel) {
    std::array<int, 4> corner{};  // and the image index
    for (std::size_t i = 0; i < spatial; ++i) {
      corner[i] = static_cast<int>(pixel % axes[i].outputs()) * axes[i].stride - axes[i].pad_before;
      pixel /= axes[i].outputs();
    }
    corner[spatial] = static_cast<int>(pixel);
    return corner;
  };
  // The first pixel must exist: starting outside the bounding box is an illegal instruction.
  ASSERT_GE(outputs, 9);
  for (const std::int64_t first : {std::int64_t{0}, outputs - 7, 2 * outputs - 5, 3 * outputs - 9})
    for (const bool last_tap : {false, true}) {
      CopyArgs args{map, nullptr, 1024, kPixels * kBox, {kFirstChannel}, {}};
      const auto corner = corner_of(first);
      for (std::size_t i = 0; i < spatial; ++i) {
        args.at[i + 1] = corner[i];
        args.tap[i] = last_tap ? axes[i].dilation * (axes[i].window - 1) : 0;
      }
      args.at[spatial + 1] = corner[spatial];
      const Memory out = on_gpu(std::vector<std::uint8_t>(kPixels * kBox, 0xee));
      args.out = out.data();
      run_kernel({"lib/ptx_tma.cuh"}, text, {.threads = 32}, kPixels * kBox + 4096, args);
      const auto shared = from_gpu<std::uint8_t>(out);
      for (int pixel = 0; pixel < kPixels; ++pixel) {
        const auto begin = corner_of(first + pixel);
        std::int64_t offset = 0, stride = kChannels;
        bool exists = begin[spatial] < kImages;
        for (std::size_t i = 0; i < spatial; ++i) {
          const int x = begin[i] + args.tap[i];
          exists = exists && x >= 0 && x < axes[i].extent;
          offset += x * stride;
          stride *= axes[i].extent;
        }
        offset += begin[spatial] * stride;
        for (int c = 0; c < kBox; ++c) {
          const int place = pixel * kBox + c, channel = args.at[0] + c;
          ASSERT_EQ(shared[static_cast<std::size_t>(place ^ (place >> 7 & 1) << 4)],
                    exists && channel < kChannels
                        ? values[static_cast<std::size_t>(offset + channel)]
                        : 0)
              << spatial << " axes, from pixel " << first << ", pixel " << pixel << ", channel "
              << channel;
        }
      }
    }
}
TEST_F(GpuTma, PixelsOfOneAxis) { expect_pixels({{31, 3, 1, 2, 2, 2}}); }
TEST_F(GpuTma, PixelsOfTwoAxes) {
  expect_pixels({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}});
  expect_pixels({{9, 3, 2, 1, 2, 1}, {7, 2, 0, 1, 1, 3}});
  expect_pixels({{11, 1, 0, 0, 3, 1}, {5, 4, 3, 2, 2, 1}});
}
TEST_F(GpuTma, PixelsOfThreeAxes) {
  expect_pixels({{5, 3, 1, 1, 1, 1}, {4, 2, 1, 0, 2, 1}, {6, 3, 2, 2, 1, 2}});
}

// TMA store: elements out of bounds stay untouched.
TEST_F(GpuTma, StoresWhatIsInside) {
  constexpr int kRows = 20, kColumns = 160, kBoxRows = 16;
  const Memory memory = on_gpu(std::vector<std::uint8_t>(kRows * kColumns, 0));
  const TensorMapForm form{.dtype = u8,
                           .swizzle = 128,
                           .axes = {{.extent = kColumns - 16, .stride = 1, .box = 128},
                                    {.extent = kRows - 2, .stride = kColumns, .box = kBoxRows}}};
  run_kernel({"lib/ptx_tma.cuh"},
             "struct Args { TensorMap map; void* out; int shared_offset, bytes; int at[5]; int "
             "tap[3]; };\n"
             "extern \"C\" __global__ void __launch_bounds__(32) kernel(const __grid_constant__ "
             "Args args) {\n"
             "  uint8* start = shared_memory();\n"
             "  start += (1024 - (uint64)start % 1024) % 1024;\n"
             "  for (int i = threadIdx.x; i < 2048; i += 32) {\n"
             "    const int moved = i ^ (i >> 7 & 7) << 4;\n"
             "    start[moved] = (uint8)(1 + i % 251);\n"
             "  }\n"
             "  fence_proxy_async();\n"
             "  __syncthreads();\n"
             "  if (threadIdx.x == 0) {\n"
             "    const int at[2] = {args.at[0], args.at[1]};\n"
             "    store_box(args.map, start, at);\n"
             "    tma_store_commit_group();\n"
             "    tma_store_wait_read<0>();\n"
             "  }\n"
             "}\n",
             {.threads = 32}, 4096, CopyArgs{map_at(form, memory), nullptr, 0, 0, {32, 7}, {}});
  const auto values = from_gpu<std::uint8_t>(memory);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      const int i = (row - 7) * 128 + column - 32;
      const bool inside = row >= 7 && row < kRows - 2 && column >= 32 && column < kColumns - 16;
      ASSERT_EQ(values[static_cast<std::size_t>(row * kColumns + column)], inside ? 1 + i % 251 : 0)
          << row << ' ' << column;
    }
}

// Element strides in tiled mode: a suite of their own, so that an unsupported feature does not hide
// other failures.
class GpuTmaElementStrides : public HopperTest {};
TEST_F(GpuTmaElementStrides, StepsThatDivideTheBox) {
  expect_box({0, -2, 1}, {16, 8, 6}, {1, 2, 3});
}
TEST_F(GpuTmaElementStrides, StepsThatDoNotDivideTheBox) {
  expect_box({0, -2, 1}, {16, 7, 5}, {1, 2, 3});
}

struct Pointers {
  const void* x;
  void* y;
};

class GpuMbarrier : public HopperTest {};

// A producer and a consumer warp with a three-stage pipeline.
TEST_F(GpuMbarrier, ProducerAndConsumer) {
  constexpr int kRounds = 20;
  const Memory out = on_gpu(std::vector<int>(kRounds * 32, -1));
  run_kernel({"lib/ptx_mbarrier.cuh"},
             "struct Args { const void* x; void* y; };\n"
             "extern \"C\" __global__ void __launch_bounds__(64) kernel(const __grid_constant__ "
             "Args args) {\n"
             "  __shared__ Mbarrier full[3], empty[3];\n"
             "  __shared__ int stages[3][32];\n"
             "  const int lane = threadIdx.x % 32;\n"
             "  if (threadIdx.x == 0)\n"
             "    for (int s = 0; s < 3; ++s) {\n"
             "      init_barrier(&full[s], 32);\n"
             "      init_barrier(&empty[s], 1);\n"
             "    }\n"
             "  fence_barriers();\n"
             "  __syncthreads();\n"
             "  for (int round = 0; round < 20; ++round) {\n"
             "    const int s = round % 3, parity = round / 3 % 2;\n"
             "    if (threadIdx.x < 32) {\n"
             "      wait_for(&empty[s], parity ^ 1);\n"
             "      stages[s][lane] = 100 * round + lane;\n"
             "      arrive(&full[s]);\n"
             "    } else {\n"
             "      wait_for(&full[s], parity);\n"
             "      ((int*)args.y)[round * 32 + lane] = stages[s][31 - lane];\n"
             "      __syncwarp();\n"
             "      if (lane == 0) arrive(&empty[s]);\n"
             "    }\n"
             "  }\n"
             "}\n",
             {.threads = 64}, 0, Pointers{nullptr, out.data()});
  const auto values = from_gpu<int>(out);
  for (int round = 0; round < kRounds; ++round)
    for (int lane = 0; lane < 32; ++lane)
      ASSERT_EQ(values[static_cast<std::size_t>(round * 32 + lane)], 100 * round + 31 - lane);
}

// Each of two CTAs multicasts half of a tile to both; a CTA continues when both have read theirs.
TEST_F(GpuMbarrier, BlocksOfAClusterShareTheirTiles) {
  constexpr int kRounds = 5, kTile = 2 * 256;
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < kRounds * kTile; ++i) bytes.push_back(some_byte(i));
  const Memory memory = on_gpu(bytes);
  const Memory out = on_gpu(std::vector<std::uint8_t>(2 * kRounds * kTile, 0));
  const TensorMapForm form{.dtype = u8,
                           .swizzle = 0,
                           .axes = {{.extent = 64, .stride = 1, .box = 64},
                                    {.extent = kRounds * kTile / 64, .stride = 64, .box = 4}}};
  run_kernel(
      {"lib/ptx_tma.cuh", "lib/ptx_cluster.cuh"},
      "struct Args { TensorMap map; void* out; int shared_offset, bytes; int at[5]; int tap[3]; "
      "};\n"
      "extern \"C\" __global__ void __launch_bounds__(64) kernel(const __grid_constant__ Args "
      "args) {\n"
      "  __shared__ alignas(128) uint8 tile[512];\n"
      "  __shared__ Mbarrier full, empty;\n"
      "  const int rank = blockIdx.x;\n"
      "  if (threadIdx.x == 0) {\n"
      "    init_barrier(&full, 1);\n"
      "    init_barrier(&empty, 2);\n"
      "    fence_barriers();\n"
      "  }\n"
      "  cluster_sync();\n"
      "  for (int round = 0; round < 5; ++round) {\n"
      "    if (threadIdx.x == 0) {\n"
      "      wait_for(&empty, round % 2 ^ 1);\n"
      "      arrive_and_expect_tx(&full, 512);\n"
      "      const int at[2] = {0, round * 8 + rank * 4};\n"
      "      load_box_multicast(tile + rank * 256, args.map, &full, at, (uint16)3);\n"
      "    }\n"
      "    wait_for(&full, round % 2);\n"
      "    for (int i = threadIdx.x; i < 512; i += 64)\n"
      "      ((uint8*)args.out)[(rank * 5 + round) * 512 + i] = tile[i];\n"
      "    __syncthreads();\n"
      "    if (threadIdx.x < 2) arrive_remote(&empty, threadIdx.x);\n"
      "  }\n"
      "  cluster_sync();\n"
      "}\n",
      {.grid = {.x = 2}, .threads = 64, .cluster = 2}, 0,
      CopyArgs{map_at(form, memory), out.data(), 0, 0, {}, {}});
  const auto values = from_gpu<std::uint8_t>(out);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], bytes[i % bytes.size()]) << i;
}

// Misuse that a real GPU does not report.
class GpuTmaMisuse : public HopperTest {
 protected:
  void SetUp() override {
    HopperTest::SetUp();
    if (!IsSkipped() && detect_gpu(0).description.find("Emulated") == std::string::npos)
      GTEST_SKIP() << "a real GPU";
  }
  static void expect_said(const std::string& lines, const std::string& said,
                          const TensorMapForm& form = {
                              .dtype = u8,
                              .swizzle = 0,
                              .axes = {{.extent = 64, .stride = 1, .box = 64},
                                       {.extent = 64, .stride = 64, .box = 4}}}) {
    const Memory memory = on_gpu(std::vector<std::uint8_t>(4096, 1));
    testing::internal::CaptureStderr();
    EXPECT_THROW(
        run_kernel({"lib/ptx_tma.cuh"},
                   "struct Args { TensorMap map; void* out; int shared_offset, bytes; int at[5]; "
                   "int tap[3]; };\n"
                   "extern \"C\" __global__ void __launch_bounds__(32) kernel(const "
                   "__grid_constant__ Args args) {\n"
                   "  __shared__ alignas(128) uint8 tile[512];\n"
                   "  __shared__ Mbarrier barrier, other;\n"
                   "  if (threadIdx.x == 0) init_barrier(&barrier, 1);\n"
                   "  __syncthreads();\n"
                   "  const int at[2] = {0, 0};\n"
                   "  if (threadIdx.x == 0) {\n    " +
                       lines + "\n  }\n}\n",
                   {.threads = 32}, 0, CopyArgs{map_at(form, memory), nullptr, 0, 0, {}, {}}),
        Error);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(said));
  }
};
TEST_F(GpuTmaMisuse, Barriers) {
  expect_said("wait_for(&barrier, 0);", "for the phase of parity 0 of the mbarrier at byte ");
  expect_said("wait_for(&barrier, 0);", "which awaits 1 of 1 arrivals and 0 bytes");
  expect_said("arrive(&other);", "was not initialised");
  expect_said("arrive_and_expect_tx(&barrier, 64); arrive(&barrier);",
              "more arrivals at an mbarrier than it expects (1)");
}
TEST_F(GpuTmaMisuse, Copies) {
  expect_said(
      "arrive_and_expect_tx(&barrier, 128); load_box(tile, args.map, &barrier, at); "
      "wait_for(&barrier, 0);",
      "more bytes complete at an mbarrier than expect_tx announced (128 more)");
  expect_said(
      "arrive_and_expect_tx(&barrier, 512); load_box(tile, args.map, &barrier, at); "
      "wait_for(&barrier, 0);",
      "which awaits 0 of 1 arrivals and 256 bytes");
  expect_said("arrive_and_expect_tx(&barrier, 256); load_box(tile + 64, args.map, &barrier, at);",
              "TMA: the shared-memory address is not a multiple of 128");
  expect_said(
      "load_box(tile, args.map, &barrier, at); arrive_and_expect_tx(&barrier, 256); "
      "wait_for(&barrier, 0); load_box(tile, args.map, &barrier, at);",
      "the CTA exits ");  // while its mbarrier awaits -256 bytes, or before they arrive
  expect_said("const int off[2] = {8, 0}; load_box(tile, args.map, &barrier, off);",
              "TMA: the innermost coordinate is not a multiple of 16 bytes");
  // 4 images of 16 pixels of 64 channels, windows of 3 pixels, padding 1.
  const TensorMapForm images{.dtype = u8,
                             .swizzle = 64,
                             .axes = {{.extent = 64, .stride = 1, .box = 64},
                                      {.extent = 16, .stride = 64, .lower = -1, .upper = -1},
                                      {.extent = 4, .stride = 64 * 16}},
                             .pixels = 8};
  for (const char* pixel : {"-2", "15"})
    expect_said(std::string("const int from[3] = {0, ") + pixel +
                    ", 0}, tap[1] = {0}; load_im2col(tile, args.map, &barrier, from, tap);",
                "TMA im2col: the first pixel is outside the bounding box", images);
  expect_said("store_box(args.map, tile, at); tma_store_commit_group();",
              "a thread exits without waiting for its bulk stores");
}

}  // namespace
}  // namespace ashlar::cuda
