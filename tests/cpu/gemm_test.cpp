// The blocked GEMM on integer values, where it must be exact.
#include "cpu/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "cpu/gemm/panel_prefetch.hpp"

namespace ashlar::cpu {
namespace {

template <class T>
struct DenseOperand final : GemmOperand<T> {
  std::vector<T> values;  // [batch][index][k]
  std::int64_t indices, k_count;
  bool k_rows;

  DenseOperand(std::int64_t batch, std::int64_t index_count, std::int64_t k_extent, bool along,
               unsigned seed)
      : indices(index_count), k_count(k_extent), k_rows(along) {
    for (std::int64_t i = 0; i < batch * indices * k_count; ++i)
      values.push_back(
          static_cast<T>(static_cast<int>((seed = seed * 1664525 + 1013904223) >> 28) - 8));
  }
  T at(std::int64_t batch, std::int64_t index, std::int64_t k) const {
    return values[static_cast<std::size_t>((batch * indices + index) * k_count + k)];
  }
  bool along_k() const override { return k_rows; }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    for (std::int64_t i = 0; i < count; ++i)
      destination[i] = k_rows ? at(batch, fixed, start + i) : at(batch, start + i, fixed);
  }
};

template <class T>
struct DenseSink final : GemmSink<T> {
  std::int64_t m, n;
  mutable std::vector<T> values;
  DenseSink(std::int64_t batch, std::int64_t rows, std::int64_t columns)
      : m(rows), n(columns), values(static_cast<std::size_t>(batch * m * n), T{-12345}) {}
  void row(std::int64_t batch, std::int64_t i, std::int64_t j, std::int64_t count,
           T* row) const override {
    std::copy_n(row, count, values.begin() + (batch * m + i) * n + j);
  }
};

DeviceProps device_with(int threads) {
  DeviceProps device;
  device.compute_units = threads;
  device.l1_bytes = 8 << 10;  // small caches: many blocks in small GEMMs
  device.l2_bytes = 64 << 10;
  device.l3_bytes = 256 << 10;
  return device;
}

template <class T>
void expect_product(const GemmShape& shape, const DenseOperand<T>& a, const DenseOperand<T>& b,
                    const DenseSink<T>& sink) {
  for (std::int64_t batch = 0; batch < shape.batch; ++batch)
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j) {
        T sum = 0;
        for (std::int64_t l = 0; l < shape.k; ++l) sum += a.at(batch, i, l) * b.at(batch, j, l);
        ASSERT_EQ(sink.values[static_cast<std::size_t>((batch * shape.m + i) * shape.n + j)], sum)
            << shape.m << "x" << shape.n << "x" << shape.k << " batch " << batch << " at " << i
            << ", " << j;
      }
}

template <class T>
void check(const GemmShape& shape, const GemmBlocks& blocks, bool a_along, bool b_along) {
  const DenseOperand<T> a(shape.batch, shape.m, shape.k, a_along, 1),
      b(shape.batch, shape.n, shape.k, b_along, 2);
  const DenseSink<T> sink(shape.batch, shape.m, shape.n);
  constexpr T kGuard = 77;
  const std::int64_t bytes = gemm_scratch_bytes(shape, blocks, sizeof(T));
  std::vector<T> scratch(static_cast<std::size_t>(bytes) / sizeof(T) + 16, kGuard);
  gemm<T>(shape, blocks, gemm_kernel<T>(), a, b, sink, scratch.data());
  for (std::size_t i = static_cast<std::size_t>(bytes) / sizeof(T); i < scratch.size(); ++i)
    ASSERT_EQ(scratch[i], kGuard) << "scratch overrun";
  expect_product(shape, a, b, sink);
}

constexpr GemmShape kShapes[] = {{1, 1, 1, 1},      {1, 13, 37, 41},  {2, 64, 64, 64},
                                 {1, 1, 300, 7},    {1, 300, 1, 7},   {3, 12, 32, 129},
                                 {1, 97, 131, 251}, {1, 5, 7, 0},     {1, 0, 7, 5},
                                 {0, 4, 4, 4},      {1, 25, 33, 700}, {5, 3, 2, 1}};

TEST(Gemm, EveryShapeAndRowDirection) {
  for (const GemmShape& shape : kShapes)
    for (const bool a_along : {false, true})
      for (const bool b_along : {false, true}) {
        if (shape.k > 0)
          check<float>(shape, choose_blocks(shape, device_with(2), sizeof(float), false), a_along,
                       b_along);
        if (shape.k > 0)
          check<double>(shape, choose_blocks(shape, device_with(3), sizeof(double), false), a_along,
                        b_along);
        check<float>(shape, stack_blocks(), a_along, b_along);
        check<double>(shape, stack_blocks(), a_along, b_along);
      }
}

TEST(Gemm, SplitKPartialsAddUp) {
  const GemmShape shape{2, 11, 13, 5000};
  for (const int threads : {1, 2, 7}) {
    const GemmBlocks blocks = choose_blocks(shape, device_with(threads), sizeof(float), true);
    if (threads == 7) {
      EXPECT_GT(blocks.splits, 1);
    }
    check<float>(shape, blocks, true, false);
  }
}

TEST(Gemm, FewerThreadsHaveScratchThanAreThere) {
  const GemmShape shape{1, 500, 200, 64};
  check<float>(shape, choose_blocks(shape, device_with(1), sizeof(float), false), true, false);
}

// Rows along K in memory.
struct MemoryOperand final : GemmOperand<float> {
  const DenseOperand<float>& dense;
  explicit MemoryOperand(const DenseOperand<float>& values) : dense(values) {}
  bool along_k() const override { return true; }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           float* destination) const override {
    dense.row(batch, fixed, start, count, destination);
  }
  const float* view(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t,
                    float*) const override {
    return dense.values.data() + (batch * dense.indices + fixed) * dense.k_count + start;
  }
  std::int64_t row_stride() const override { return dense.k_count; }
};

// B larger than 1 MiB, prepacked. Rows of A a power of two apart are read in place if a K-block
// holds all of K, and packed if it holds part of it.
TEST(Gemm, PrepackedPanelsBeyondL2) {
  DeviceProps device;
  device.compute_units = 2, device.l1_bytes = 48 << 10;
  device.l2_bytes = 1280 << 10, device.l3_bytes = 8 << 20;
  for (const GemmShape& shape :
       {GemmShape{1, 1, 700, 500}, GemmShape{1, 8, 700, 500}, GemmShape{1, 32, 1100, 300},
        GemmShape{1, 75, 300, 1024}, GemmShape{1, 75, 150, 2048}, GemmShape{2, 40, 260, 1030}}) {
    const DenseOperand<float> a(shape.batch, shape.m, shape.k, true, 3),
        b(shape.batch, shape.n, shape.k, false, 4);
    const DenseSink<float> sink(shape.batch, shape.m, shape.n);
    const GemmBlocks blocks = choose_blocks(shape, device, sizeof(float), false);
    std::vector<float> packed(static_cast<std::size_t>(packed_b_elements(shape, b)));
    pack_b(shape, b, packed.data());
    std::vector<float> scratch(
        static_cast<std::size_t>(gemm_scratch_bytes(shape, blocks, sizeof(float))) / sizeof(float));
    gemm<float>(shape, blocks, gemm_kernel<float>(), MemoryOperand(a), b, sink, scratch.data(),
                packed.data());
    expect_product(shape, a, b, sink);
  }
}

TEST(Gemm, PrefetchCoversEveryPanelOnce) {
  constexpr std::int64_t kElements = 256 * 64;
  const std::vector<float> panels(static_cast<std::size_t>(4 * kElements));
  for (const std::int64_t distance : {std::int64_t{0}, kElements})
    for (const std::int64_t calls : {1, 3, 6, 24})
      for (const std::int64_t k : {8, 100, 256, 1024}) {
        PanelPrefetcher<float> prefetch(panels.data(), kElements, distance, calls, k);
        std::int64_t taken = 0;
        for (std::int64_t call = 0; call < calls; ++call) {
          const PanelPrefetch<float> share = prefetch.take(k);
          EXPECT_EQ(share.at - panels.data(), taken);
          EXPECT_LE(share.left, k / 4 * share.repeats);
          taken += share.left * share.advance;
        }
        EXPECT_EQ(taken, kElements) << calls << " calls of depth " << k;
        EXPECT_EQ(prefetch.take(k).left, 0);
      }
}

TEST(Gemm, BlocksSurviveKnobs) {
  const GemmBlocks blocks =
      choose_blocks({1, 1000, 1000, 1000}, device_with(4), sizeof(float), true);
  Config config;
  blocks.to_knobs(config);
  const GemmBlocks back = GemmBlocks::from_knobs(config);
  EXPECT_EQ(back.rows, blocks.rows);
  EXPECT_EQ(back.columns, blocks.columns);
  EXPECT_EQ(back.k, blocks.k);
  EXPECT_EQ(back.packed, blocks.packed);
  EXPECT_EQ(back.splits, blocks.splits);
  EXPECT_EQ(back.threads, blocks.threads);
}

}  // namespace
}  // namespace ashlar::cpu
