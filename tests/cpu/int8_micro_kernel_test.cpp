// The int8 micro-kernel and its packing on every target of this CPU, at extreme values.
#include "cpu/kernels/int8_micro_kernel.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <vector>

#include "cpu/kernels/int8_pack.hpp"

namespace ashlar::cpu {
namespace {

// Calls `check` with each target forced, then restores the best one.
template <class Check>
void for_each_target(const Check& check) {
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    check();
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

struct Bytes {
  std::uint32_t state = 12345;
  // Every third value is an extreme.
  std::uint8_t next() {
    state = state * 1664525 + 1013904223;
    constexpr std::uint8_t kExtremes[] = {0, 255, 127, 128};
    return state >> 24 < 85 ? kExtremes[state >> 9 & 3]
                            : static_cast<std::uint8_t>(state >> 16 & 255);
  }
  std::vector<std::uint8_t> make(std::int64_t count) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
    std::generate(bytes.begin(), bytes.end(), [&] { return next(); });
    return bytes;
  }
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void check_product(const Int8MicroKernel& micro_kernel, std::int64_t rows, std::int64_t columns,
                   std::int64_t segments, std::int64_t quads, Int8Output result, bool starts) {
  SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << segments << " of " << quads
                                  << " quads, result " << static_cast<int>(result));
  Bytes bytes;
  const std::int64_t a_row = 4 * quads + 3, spread = rows * a_row + 5;
  const auto a = bytes.make(segments * spread);
  const auto b = bytes.make(segments * quads * micro_kernel.columns * 4);
  std::vector<std::int64_t> offsets;
  for (std::int64_t s = 0; s < segments; ++s) offsets.push_back((segments - 1 - s) * spread);
  std::vector<std::int32_t> row_start, column_start;
  for (std::int64_t i = 0; i < rows; ++i) row_start.push_back(static_cast<int>(i) * 70001 - 30);
  for (std::int64_t j = 0; j < micro_kernel.columns; ++j)
    column_start.push_back(static_cast<int>(j) * -1234567);
  const std::int64_t c_row = columns + 3;
  constexpr std::int32_t kGuard = 99;
  std::vector<std::int32_t> c(at(rows * c_row), kGuard);
  std::vector<std::int8_t> c_bytes(c.size(), kGuard);

  // Rows in reverse order.
  std::vector<std::int64_t> row_offsets;
  for (std::int64_t i = 0; i < rows; ++i) row_offsets.push_back((rows - 1 - i) * a_row);
  Int8MicroArgs o{
      .rows = rows, .columns = columns, .a = a.data(), .row_offsets = row_offsets.data()};
  o.segments = segments;
  o.quads = quads;
  o.segment_offsets = segments == 1 ? nullptr : offsets.data();
  o.b = reinterpret_cast<const std::int8_t*>(b.data());
  o.row_start = starts ? row_start.data() : nullptr;
  o.column_start = starts ? column_start.data() : nullptr;
  o.result = result;
  o.c = result == Int8Output::i32 ? static_cast<void*>(c.data()) : c_bytes.data();
  o.c_row = c_row;
  micro_kernel.multiply(o);

  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < c_row; ++j) {
      const std::size_t index = at(i * c_row + j);
      if (j >= columns) {
        ASSERT_EQ(c[index], kGuard);
        ASSERT_EQ(c_bytes[index], kGuard);
        continue;
      }
      std::int32_t sum = starts ? row_start[at(i)] + column_start[at(j)] : 0;
      for (std::int64_t s = 0; s < segments; ++s)
        for (std::int64_t l = 0; l < 4 * quads; ++l)
          sum += a[at((segments == 1 ? 0 : offsets[at(s)]) + row_offsets[at(i)] + l)] *
                 o.b[((s * quads + l / 4) * micro_kernel.columns + j) * 4 + l % 4];
      if (result == Int8Output::i32)
        ASSERT_EQ(c[index], sum) << i << ", " << j;
      else if (result == Int8Output::i8)
        ASSERT_EQ(c_bytes[index], std::clamp(sum, -128, 127)) << i << ", " << j;
      else
        ASSERT_EQ(static_cast<std::uint8_t>(c_bytes[index]), std::clamp(sum, 0, 255));
    }
}

void check_all(const Int8MicroKernel& micro_kernel) {
  ASSERT_LE(micro_kernel.rows, kMaxInt8Rows);
  ASSERT_LE(micro_kernel.columns, kMaxInt8Columns);
  for (std::int64_t rows = 1; rows <= 3 * micro_kernel.rows + 1; ++rows)  // one tile and several
    for (const Int8Output result : {Int8Output::i32, Int8Output::i8, Int8Output::u8}) {
      check_product(micro_kernel, rows, micro_kernel.columns, 1, 7, result, rows % 2 == 0);
      check_product(micro_kernel, rows, std::max<std::int64_t>(micro_kernel.columns - 1, 1), 3, 2,
                    result, rows % 3 == 0);
      for (std::int64_t columns = 1; columns < micro_kernel.columns; columns += 5)
        check_product(micro_kernel, rows, columns, 2, 1, result, true);
      check_product(micro_kernel, rows, micro_kernel.columns, 1, 0, result, true);
    }
}

TEST(Int8MicroKernel, EveryTargetAndEveryTile) {
  for_each_target([] {
    check_all(int8_micro_kernel());
    check_all(portable_int8_micro_kernel());
  });
}

// Sums that vpmaddubsw would saturate.
TEST(Int8MicroKernel, LargestProductsDoNotSaturate) {
  for_each_target([] {
    for (const Int8MicroKernel* micro_kernel :
         {&int8_micro_kernel(), &portable_int8_micro_kernel()}) {
      constexpr std::int64_t kQuads = 16000, origin = 0;
      const std::vector<std::uint8_t> a(4 * kQuads, 255);
      const std::vector<std::int8_t> b(at(4 * kQuads * micro_kernel->columns), -128);
      std::vector<std::int32_t> c(at(micro_kernel->columns));
      micro_kernel->multiply({.rows = 1,
                              .columns = micro_kernel->columns,
                              .a = a.data(),
                              .row_offsets = &origin,
                              .segments = 1,
                              .quads = kQuads,
                              .segment_offsets = nullptr,
                              .b = b.data(),
                              .row_start = nullptr,
                              .column_start = nullptr,
                              .result = Int8Output::i32,
                              .c = c.data(),
                              .c_row = 0});
      for (const std::int32_t sum : c) ASSERT_EQ(sum, 255 * -128 * 4 * kQuads);
    }
  });
}

TEST(Int8Pack, PanelsOfEveryShape) {
  for_each_target([] {
    for (const std::int64_t width : {2, 8, 16, 32, 64})
      for (const std::int64_t columns : {std::int64_t{1}, width - 1, width})
        for (const std::int64_t k : {1, 3, 4, 16, 67, 130})
          for (const std::uint8_t flip : std::initializer_list<std::uint8_t>{0x00, 0x80})
            for (const bool along_k : {false, true}) {
              SCOPED_TRACE(testing::Message() << columns << " columns, depth " << k << " flip "
                                              << int{flip} << " along depth " << along_k);
              Bytes bytes;
              const std::int64_t stride = (along_k ? k : columns) + 3;
              const auto source = bytes.make((along_k ? columns : k) * stride);
              const std::int64_t filled = (k + 3) / 4 * 4;
              std::vector<std::int8_t> packed(at(filled * width + 1), 77);
              (along_k ? int8_pack().k_contiguous : int8_pack().n_contiguous)(
                  source.data(), stride, columns, k, flip, width, packed.data());
              for (std::int64_t j = 0; j < width; ++j)
                for (std::int64_t l = 0; l < filled; ++l) {
                  const bool there = j < columns && l < k;
                  const auto value =
                      there ? source[at(along_k ? j * stride + l : l * stride + j)] ^ flip : 0;
                  const std::int8_t byte = packed[at((l / 4 * width + j) * 4 + l % 4)];
                  ASSERT_EQ(static_cast<std::uint8_t>(byte), value) << j << ", " << l;
                }
              ASSERT_EQ(packed.back(), 77);
            }
  });
}

TEST(Int8Pack, CopiesAndTransposes) {
  for_each_target([] {
    for (const std::int64_t rows : {1, 15, 16, 50})
      for (const std::int64_t k : {1, 16, 31, 64, 100})
        for (const std::uint8_t flip : std::initializer_list<std::uint8_t>{0x00, 0x80}) {
          Bytes bytes;
          const auto source = bytes.make(k * (rows + 1));
          std::vector<std::uint8_t> target(at(rows * (k + 2)), 77);
          int8_pack().transpose(source.data(), rows + 1, rows, k, flip, target.data(), k + 2);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t l = 0; l < k + 2; ++l)
              ASSERT_EQ(target[at(i * (k + 2) + l)],
                        l < k ? source[at(l * (rows + 1) + i)] ^ flip : 77);
          std::vector<std::uint8_t> copy(source.size() + 1, 77);
          int8_pack().copy(source.data(), static_cast<std::int64_t>(source.size()), flip,
                           copy.data());
          for (std::size_t i = 0; i < source.size(); ++i) ASSERT_EQ(copy[i], source[i] ^ flip);
          ASSERT_EQ(copy.back(), 77);
        }
  });
}

}  // namespace
}  // namespace ashlar::cpu
