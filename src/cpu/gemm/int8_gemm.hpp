// int8 GEMM with i32 accumulators, blocked for caches and threads: the counterpart of gemm.hpp for
// kernels/int8_micro_kernel.hpp. Rows of C are grouped in lines (rows of an image, or a few rows of
// a matrix). Rows of A are read in place or staged line by line; B is packed once.
#pragma once

#include <ashlar/device.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernels/int8_micro_kernel.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

constexpr std::int64_t result_bytes(Int8Output result) { return result == Int8Output::i32 ? 4 : 1; }

struct Int8GemmShape {
  std::int64_t batch = 1;
  std::int64_t lines = 0, width = 0;  // rows of C: at most lines * width
  std::int64_t rows = 0;              // M; the last line may be short
  std::int64_t columns = 0;
  std::int64_t segments = 1, k = 0;  // K of one segment; see Int8MicroArgs
  bool a_signed = false, b_signed = true;
  bool one_b = true;  // B is shared by all batches

  std::int64_t quads() const { return (k + 3) / 4; }
  double operations() const;
};

// Cache and thread blocking.
struct Int8GemmBlocks {
  std::int64_t rows = 0;                             // rows of A staged at once, in whole lines
  std::int64_t thread_rows = 1, thread_columns = 1;  // grid of threads over M and N

  void to_knobs(Config& config) const;
  static Int8GemmBlocks from_knobs(const Config& config);
  std::int64_t lines(const Int8GemmShape& shape) const;  // lines of a block
};
// `row_bytes`: bytes of A and C per row of a block.
Int8GemmBlocks choose_int8_blocks(const Int8GemmShape& shape, const DeviceProps& device,
                                  std::int64_t row_bytes);

// B as columns x (segment, tap, channel), with strides in bytes.
struct Int8ColumnSource {
  std::vector<std::int64_t> batch_offsets;    // one entry if B is shared
  std::vector<std::int64_t> segment_offsets;  // empty: one segment at offset 0
  std::int64_t taps = 1, channels = 0;        // taps * channels = K of a segment
  std::int64_t column_stride = 0, tap_stride = 0, channel_stride = 0;
};

// B packed, with the per-column correction terms for signed A and unsigned B (zero points).
class Int8Panels {
 public:
  Int8Panels() = default;
  explicit Int8Panels(const Int8GemmShape& shape);
  std::int64_t bytes() const { return batches_ * batch_bytes_; }
  static std::int64_t most_bytes(const Int8GemmShape& shape);  // upper bound for all CPUs
  std::int64_t panels() const { return panels_; }
  std::int64_t batches() const { return batches_; }

  // Packs one panel of one batch; `memory` is the start of bytes(), aligned to kWorkspaceAlignment.
  void pack(const Int8ColumnSource& source, const std::uint8_t* data, std::int64_t batch,
            std::int64_t panel, std::byte* memory) const;
  void pack_all(const Int8ColumnSource& source, const std::uint8_t* data, std::byte* memory) const;

  const std::int8_t* panel(std::int64_t batch, std::int64_t panel, const std::byte* memory) const {
    return reinterpret_cast<const std::int8_t*>(memory + of(batch) + panel * panel_bytes_);
  }
  const std::int32_t* terms(std::int64_t batch, std::int64_t panel, const std::byte* memory) const {
    return reinterpret_cast<const std::int32_t*>(memory + of(batch) + terms_offset_) +
           panel * columns_;
  }
  // A panel of ones, which sums the rows of A; only if B is unsigned.
  const std::int8_t* ones(std::int64_t batch, const std::byte* memory) const {
    return panel(batch, panels_, memory);
  }

 private:
  Int8Panels(const Int8GemmShape& shape, std::int64_t panel_columns);
  std::int64_t of(std::int64_t batch) const { return batches_ == 1 ? 0 : batch * batch_bytes_; }
  void pack_segment(const Int8ColumnSource& source, const std::uint8_t* data, std::int64_t columns,
                    std::int8_t* panel) const;

  Int8GemmShape shape_;
  std::int64_t columns_ = 0, panels_ = 0, batches_ = 0;
  std::int64_t panel_bytes_ = 0, terms_offset_ = 0, batch_bytes_ = 0;
};

// Rows of A, line by line.
class Int8Rows {
 public:
  virtual ~Int8Rows() = default;
  // Null: one segment at offset 0.
  virtual const std::int64_t* segment_offsets() const = 0;
  // Provides the rows of these lines, in place or staged in `buffer`: writes their offsets and
  // returns the base pointer.
  virtual const std::uint8_t* block(std::int64_t batch, std::int64_t line, std::int64_t lines,
                                    std::uint8_t* buffer, std::int64_t* row_offsets) const = 0;
};

// Consumer of C.
class Int8Sink {
 public:
  struct Target {
    void* c = nullptr;     // first element
    std::int64_t row = 0;  // row stride in elements
  };
  virtual ~Int8Sink() = default;
  // Destination of a tile stored by the micro-kernel; used if Int8GemmScratch::acc_bytes is 0.
  virtual Target target(std::int64_t batch, std::int64_t row, std::int64_t column) const = 0;
  // Consumes rows [row, row + rows) and columns [column, column + columns) of the accumulators.
  virtual void store(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns, const std::int32_t* acc, std::int64_t acc_row) const = 0;
};

// Scratch of one thread tile. Parts of 0 bytes are not needed.
struct Int8GemmScratch {
  std::int64_t staged_bytes = 0, acc_bytes = 0, row_term_bytes = 0, offset_bytes = 0;
  std::int64_t thread_bytes() const {
    return staged_bytes + acc_bytes + row_term_bytes + offset_bytes;
  }
};
// `staged_bytes`: staged A of a block.
Int8GemmScratch int8_gemm_scratch(const Int8GemmShape& shape, const Int8GemmBlocks& blocks,
                                  std::int64_t staged_bytes, bool stores_in_place);

struct Int8GemmWork {
  const Int8GemmShape& shape;
  const Int8GemmBlocks& blocks;
  const Int8GemmScratch& memory;
  const Int8Panels& panels;
  Int8Output result;                // output type if C is stored in place
  const Int8ColumnSource* source;   // null: B is packed already
  const std::uint8_t* source_data;  // first byte of B
  std::byte* packed;
  std::byte* cells;  // thread_bytes() each
};
void int8_gemm(const Int8GemmWork& work, const Int8Rows& a, const Int8Sink& sink);

}  // namespace ashlar::cpu
