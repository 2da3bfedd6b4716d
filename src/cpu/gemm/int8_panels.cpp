// Packs B of an int8 GEMM into panels.
#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/gemm/gemm.hpp"
#include "cpu/gemm/int8_gemm.hpp"
#include "cpu/kernels/int8_pack.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::uint32_t kShift = 128;  // zero point between signed and unsigned bytes

}  // namespace

Int8Panels::Int8Panels(const Int8GemmShape& shape)
    : Int8Panels(shape, int8_micro_kernel().columns) {}

Int8Panels::Int8Panels(const Int8GemmShape& shape, std::int64_t panel_columns)
    : shape_(shape),
      columns_(panel_columns),
      panels_(divide_up(shape.columns, columns_)),
      batches_(shape.one_b ? std::min<std::int64_t>(shape.batch, 1) : shape.batch),
      panel_bytes_(shape.segments * shape.quads() * 4 * columns_) {
  // The terms of a panel are aligned to vectors.
  terms_offset_ = round_up((panels_ + (shape.b_signed ? 0 : 1)) * panel_bytes_, 64);
  batch_bytes_ = terms_offset_ + round_up(panels_ * columns_ * 4, 64);
}

std::int64_t Int8Panels::most_bytes(const Int8GemmShape& shape) {
  return Int8Panels(shape, kMaxInt8Columns).bytes();
}

void Int8Panels::pack_segment(const Int8ColumnSource& source, const std::uint8_t* data,
                              std::int64_t columns, std::int8_t* panel) const {
  const Int8Pack& kernel = int8_pack();
  const std::uint8_t flip = shape_.b_signed ? 0 : 0x80;
  const std::int64_t k = shape_.k;
  const bool one_stride = source.taps == 1 || source.channels == 1 ||
                          source.tap_stride == source.channels * source.channel_stride;
  const std::int64_t stride = source.channels == 1 ? source.tap_stride : source.channel_stride;
  if (one_stride && (stride == 1 || k == 1))
    return kernel.k_contiguous(data, source.column_stride, columns, k, flip, columns_, panel);
  if (one_stride && (source.column_stride == 1 || columns == 1))
    return kernel.n_contiguous(data, stride, columns, k, flip, columns_, panel);
  // Arbitrary strides: a chunk of K at a time through a contiguous buffer.
  constexpr std::int64_t kChunk = 64;
  std::array<std::uint8_t, kMaxInt8Columns * kChunk> bytes;
  for (std::int64_t first = 0; first < k; first += kChunk) {
    const std::int64_t count = std::min(kChunk, k - first);
    for (std::int64_t l = 0; l < count; ++l) {
      const std::uint8_t* from = data + (first + l) / source.channels * source.tap_stride +
                                 (first + l) % source.channels * source.channel_stride;
      for (std::int64_t j = 0; j < columns; ++j)
        bytes[static_cast<std::size_t>(j * kChunk + l)] = from[j * source.column_stride];
    }
    kernel.k_contiguous(bytes.data(), kChunk, columns, count, flip, columns_,
                        panel + first * columns_);
  }
}

void Int8Panels::pack(const Int8ColumnSource& source, const std::uint8_t* data, std::int64_t batch,
                      std::int64_t panel, std::byte* memory) const {
  std::byte* own = memory + of(batch);
  auto* packed = reinterpret_cast<std::int8_t*>(own + panel * panel_bytes_);
  const std::int64_t first = panel * columns_;
  const std::int64_t columns = std::min(columns_, shape_.columns - first);
  const std::int64_t segment_bytes = shape_.quads() * 4 * columns_;
  data += source.batch_offsets[static_cast<std::size_t>(batches_ == 1 ? 0 : batch)] +
          first * source.column_stride;
  for (std::int64_t s = 0; s < shape_.segments; ++s)
    pack_segment(source,
                 data + (source.segment_offsets.empty()
                             ? 0
                             : source.segment_offsets[static_cast<std::size_t>(s)]),
                 columns, packed + s * segment_bytes);

  // With A = A' - za and B = B' + zb, where the micro-kernel multiplies A' and B':
  //   A B = A' B' + zb * sum(A') - za * (sum(B') + zb * K)
  // The last term is per column, the second one per row.
  auto* terms = reinterpret_cast<std::int32_t*>(own + terms_offset_) + panel * columns_;
  std::fill_n(terms, columns_, 0);
  if (shape_.a_signed) {
    constexpr std::int64_t kOnes = 512;
    static constexpr auto ones = [] {
      std::array<std::uint8_t, kOnes> bytes{};
      bytes.fill(1);
      return bytes;
    }();
    const std::int64_t quads = shape_.segments * shape_.quads();
    const std::int64_t origin = 0;
    Int8MicroArgs sum{.rows = 1, .columns = columns_, .a = ones.data(), .row_offsets = &origin};
    sum.column_start = terms;
    sum.c = terms;
    for (std::int64_t q = 0; q < quads; q += kOnes / 4) {
      sum.quads = std::min(kOnes / 4, quads - q);
      sum.b = packed + q * 4 * columns_;
      int8_micro_kernel().multiply(sum);
    }
    const auto k = static_cast<std::uint32_t>(shape_.segments * shape_.k);
    const std::uint32_t shift_of_b = shape_.b_signed ? 0 : kShift * k;
    for (std::int64_t j = 0; j < columns_; ++j)
      terms[j] = static_cast<std::int32_t>(
          0u - kShift * (static_cast<std::uint32_t>(terms[j]) + shift_of_b));
  }
  if (!shape_.b_signed && panel + 1 == panels_) {
    auto* ones = reinterpret_cast<std::int8_t*>(own + panels_ * panel_bytes_);
    for (std::int64_t s = 0; s < shape_.segments; ++s)
      for (std::int64_t l = 0; l < shape_.quads() * 4; ++l)
        for (std::int64_t j = 0; j < columns_; ++j)
          ones[s * segment_bytes + (l / 4 * columns_ + j) * 4 + l % 4] = l < shape_.k ? 1 : 0;
  }
}

void Int8Panels::pack_all(const Int8ColumnSource& source, const std::uint8_t* data,
                          std::byte* memory) const {
  constexpr std::int64_t kBytesWorthAThread = 64 << 10;
  parallel_for(batches_ * panels_, kBytesWorthAThread / std::max<std::int64_t>(panel_bytes_, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t i = begin; i < end; ++i)
                   pack(source, data, i / panels_, i % panels_, memory);
               });
}

}  // namespace ashlar::cpu
