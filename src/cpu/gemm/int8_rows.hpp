// A of an int8 GEMM as a strided matrix, and the support check and cost of int8 engines.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.hpp"
#include "cpu/gemm/byte_operand.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/gemm/int8_gemm.hpp"
#include "cpu/kernels/int8_pack.hpp"

namespace ashlar::cpu {

struct StridedRowLayout {
  std::vector<std::int64_t> batch_offsets;
  std::int64_t rows = 0, k = 0;
  std::int64_t row_stride = 0, k_stride = 0;  // bytes
  std::int64_t width = 0;                     // rows per line
  bool is_signed = false;

  // Rows are copied if they are signed (shifted to unsigned), if K is not a multiple of 4, or if
  // their stride maps them to the same few cache sets.
  bool in_place() const {
    constexpr std::int64_t kWayBytes = 4096;
    return !is_signed && k % 4 == 0 && (k_stride == 1 || k == 0) && row_stride % kWayBytes != 0;
  }
  // An odd number of cache lines.
  std::int64_t staged_row() const { return (divide_up(k, 64) | 1) * 64; }
  std::int64_t staged_bytes(std::int64_t lines) const {
    return in_place() ? 0 : checked_mul(lines * width, staged_row());
  }
};

class StridedRows final : public Int8Rows {
 public:
  StridedRows(const StridedRowLayout& layout, const std::uint8_t* data)
      : layout_(layout), data_(data) {}
  const std::int64_t* segment_offsets() const override { return nullptr; }
  const std::uint8_t* block(std::int64_t batch, std::int64_t line, std::int64_t lines,
                            std::uint8_t* buffer, std::int64_t* row_offsets) const override {
    const StridedRowLayout& l = layout_;
    const std::uint8_t* source =
        data_ + l.batch_offsets[static_cast<std::size_t>(batch)] + line * l.width * l.row_stride;
    const std::int64_t rows = std::min(lines * l.width, l.rows - line * l.width);
    const std::int64_t distance = l.in_place() ? l.row_stride : l.staged_row();
    for (std::int64_t i = 0; i < rows; ++i) row_offsets[i] = i * distance;
    if (l.in_place()) return source;
    const std::uint8_t flip = l.is_signed ? 0x80 : 0;
    const Int8Pack& kernel = int8_pack();
    if (l.k_stride == 1) {
      for (std::int64_t i = 0; i < rows; ++i)
        kernel.copy(source + i * l.row_stride, l.k, flip, buffer + i * distance);
    } else if (l.row_stride == 1) {
      kernel.transpose(source, l.k_stride, rows, l.k, flip, buffer, distance);
    } else {
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t d = 0; d < l.k; ++d)
          buffer[i * distance + d] = source[i * l.row_stride + d * l.k_stride] ^ flip;
    }
    return buffer;
  }

 private:
  const StridedRowLayout& layout_;
  const std::uint8_t* data_;
};

// Whether the epilogue is a plain store of an output type of the micro-kernel; sets `result`.
inline bool stores_as_it_is(const PointwiseProgram& epilogue, Int8Output& result) {
  if (!epilogue.is_plain_store()) return false;
  switch (epilogue.stores[0].view.dtype) {
    case DType::i32: result = Int8Output::i32; return true;
    case DType::i8: result = Int8Output::i8; return true;
    case DType::u8: result = Int8Output::u8; return true;
    default: return false;
  }
}

// The epilogue on accumulators converted to f32, or nothing where the conversion may change a
// result. It does not where every step on an accumulator computes in f32: the conversion then comes
// first, however large the accumulator. A tensor of i32 or i64 holds every accumulator exactly, so
// that its rounding can be dropped. Rounding to any narrower type stays: it commutes with the
// conversion, because f32 is exact up to 2^24 and every narrower type saturates below that.
inline std::optional<PointwiseProgram> float_epilogue(const PointwiseProgram& epilogue) {
  PointwiseProgram program = epilogue;
  if (!program.has_accumulator()) return std::nullopt;
  std::optional<DType>& rounding = program.steps[0].round_to;
  if (rounding == i32 || rounding == i64) rounding = {};
  if (program.precision() == f64) return std::nullopt;
  for (const PointwiseProgram::Store& store : program.stores)
    if (store.value == 0 && store.view.dtype != f32) return std::nullopt;
  return program;
}

// Whether the region is an int8 GEMM of this K whose i32 accumulators cannot overflow.
inline Support int8_gemm_support(const Region& region, std::int64_t k) {
  if (region.anchor->compute != i32 && region.anchor->compute != i64)
    return Support::no("the compute type is not an integer");
  double largest = static_cast<double>(k);
  for (const int slot : {0, 1}) {
    if (!ByteOperand::fits(region, slot))
      return Support::no("an operand is not an integer of at most 8 bits");
    const DType dtype = region.anchor->inputs[static_cast<std::size_t>(slot)].dtype;
    largest *= std::max(largest_value(dtype), -lowest_value(dtype));
  }
  if (largest > largest_value(i32)) return Support::no("i32 accumulators may overflow");
  return Support::yes();
}

// The single configuration of an engine that runs this GEMM.
inline Config int8_gemm_config(const Region& region, const Int8GemmShape& shape,
                               const Int8GemmBlocks& blocks, const Int8GemmScratch& memory,
                               std::int64_t materialised_bytes) {
  // CPUs without VNNI reach about their f32 peak, twice the rate that costs of f64 regions are
  // measured in; CPUs with VNNI reach four times as much.
  constexpr double kFraction = 4;
  constexpr double kOperationsPerMovedByte = 30;
  Config config;
  blocks.to_knobs(config);
  const double made = static_cast<double>(materialised_bytes);
  const double packed = static_cast<double>((shape.one_b ? 1 : shape.batch) * shape.columns *
                                            shape.segments * shape.k);
  config.cost.flops = shape.operations() + kOperationsPerMovedByte * (packed + 4 * made) +
                      region.epilogue.flops_per_element() *
                          static_cast<double>(element_count(region.epilogue.space));
  config.cost.bytes = region.bytes();
  config.cost.flops_fraction = kFraction;
  config.scratch_bytes = materialised_bytes + Int8Panels::most_bytes(shape) +
                         memory.thread_bytes() * blocks.thread_rows * blocks.thread_columns;
  return config;
}

}  // namespace ashlar::cpu
