// Products of 8-bit integers with 32-bit sums, blocked for caches and threads: the counterpart of
// gemm.hpp for kernels/int8_micro_kernel.hpp. Rows of C come in lines (the rows of an image, or a
// few rows of a matrix); A's rows are read where they lie or staged line by line, B is packed once.
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
  std::int64_t lines = 0, width = 0;  // rows of C are lines * width at most,
  std::int64_t rows = 0;              // of which this many are there: the last line may be short
  std::int64_t columns = 0;
  std::int64_t segments = 1, k = 0;  // bytes of a segment: see Int8MicroArgs
  bool a_signed = false, b_signed = true;
  bool one_b = true;  // for all batches

  std::int64_t quads() const { return (k + 3) / 4; }
  double operations() const;
};

// How a product is cut.
struct Int8GemmBlocks {
  std::int64_t rows = 0;                             // staged at once, in whole lines
  std::int64_t thread_rows = 1, thread_columns = 1;  // parts worked on side by side

  void to_knobs(Config& config) const;
  static Int8GemmBlocks from_knobs(const Config& config);
  std::int64_t lines(const Int8GemmShape& shape) const;  // of a block
};
// `row_bytes`: of A and of C for each row of a block.
Int8GemmBlocks choose_int8_blocks(const Int8GemmShape& shape, const DeviceProps& device,
                                  std::int64_t row_bytes);

// B as columns x (segment, tap, channel), each with a stride in bytes.
struct Int8ColumnSource {
  std::vector<std::int64_t> batch_offsets;    // one where there is one B
  std::vector<std::int64_t> segment_offsets;  // empty: one segment at 0
  std::int64_t taps = 1, channels = 0;        // taps * channels is the depth of a segment
  std::int64_t column_stride = 0, tap_stride = 0, channel_stride = 0;
};

// B packed, with what must be added to each column's sums because of its and A's sign.
class Int8Panels {
 public:
  Int8Panels() = default;
  explicit Int8Panels(const Int8GemmShape& shape);
  std::int64_t bytes() const { return batches_ * batch_bytes_; }
  static std::int64_t most_bytes(const Int8GemmShape& shape);  // on any processor
  std::int64_t panels() const { return panels_; }
  std::int64_t batches() const { return batches_; }

  // One panel of one batch; `memory` is the start of bytes(), aligned to kWorkspaceAlignment.
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
  // A panel of ones, to sum the rows of A with; only where B is unsigned.
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

// A, line by line.
class Int8Rows {
 public:
  virtual ~Int8Rows() = default;
  // Null: one segment at 0.
  virtual const std::int64_t* segment_offsets() const = 0;
  // Makes the rows of these lines readable, in place or in `buffer`: writes the offset of each, and
  // returns what it counts from.
  virtual const std::uint8_t* block(std::int64_t batch, std::int64_t line, std::int64_t lines,
                                    std::uint8_t* buffer, std::int64_t* row_offsets) const = 0;
};

// C.
class Int8Sink {
 public:
  struct Target {
    void* c = nullptr;     // the first element
    std::int64_t row = 0;  // elements to the next row
  };
  virtual ~Int8Sink() = default;
  // Where a tile is stored as it is; used where Int8GemmScratch::acc_bytes is 0.
  virtual Target target(std::int64_t batch, std::int64_t row, std::int64_t column) const = 0;
  // Takes rows [row, row + rows) and columns [column, column + columns).
  virtual void store(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns, const std::int32_t* acc, std::int64_t acc_row) const = 0;
};

// Scratch of a product, per cell. Parts of 0 bytes are not needed.
struct Int8GemmScratch {
  std::int64_t staged_bytes = 0, acc_bytes = 0, row_term_bytes = 0, offset_bytes = 0;
  std::int64_t thread_bytes() const {
    return staged_bytes + acc_bytes + row_term_bytes + offset_bytes;
  }
};
// `staged_bytes`: of A for a block.
Int8GemmScratch int8_gemm_scratch(const Int8GemmShape& shape, const Int8GemmBlocks& blocks,
                                  std::int64_t staged_bytes, bool stores_in_place);

struct Int8GemmWork {
  const Int8GemmShape& shape;
  const Int8GemmBlocks& blocks;
  const Int8GemmScratch& memory;
  const Int8Panels& panels;
  Int8Output result;                // where stored in place
  const Int8ColumnSource* source;   // null: packed already
  const std::uint8_t* source_data;  // B's first byte
  std::byte* packed;
  std::byte* cells;  // thread_bytes() each
};
void int8_gemm(const Int8GemmWork& work, const Int8Rows& a, const Int8Sink& sink);

}  // namespace ashlar::cpu
