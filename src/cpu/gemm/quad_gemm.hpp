// Products of 8-bit integers with 32-bit sums, blocked for caches and threads: the counterpart of
// gemm.hpp for kernels/quad_product.hpp. Rows of C come in lines (the rows of an image, or a few
// rows of a matrix); A's rows are read where they lie or staged line by line, B is packed once.
#pragma once

#include <ashlar/device.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernels/quad_product.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

constexpr std::int64_t result_bytes(QuadResult result) { return result == QuadResult::i32 ? 4 : 1; }

struct QuadShape {
  std::int64_t batch = 1;
  std::int64_t lines = 0, width = 0;  // rows of C are lines * width at most,
  std::int64_t rows = 0;              // of which this many are there: the last line may be short
  std::int64_t columns = 0;
  std::int64_t segments = 1, depth = 0;  // bytes of a segment: see QuadOperands
  bool a_signed = false, b_signed = true;
  bool one_b = true;  // for all batches

  std::int64_t quads() const { return (depth + 3) / 4; }
  double operations() const;
};

// How a product is cut.
struct QuadBlocks {
  std::int64_t rows = 0;                         // staged at once, in whole lines
  std::int64_t row_cells = 1, column_cells = 1;  // parts worked on side by side

  void to_knobs(Config& config) const;
  static QuadBlocks from_knobs(const Config& config);
  std::int64_t lines(const QuadShape& shape) const;  // of a block
};
// `row_bytes`: of A and of C for each row of a block.
QuadBlocks choose_quad_blocks(const QuadShape& shape, const DeviceProps& device,
                              std::int64_t row_bytes);

// B as columns x (segment, tap, channel), each with a stride in bytes.
struct QuadColumnSource {
  std::vector<std::int64_t> batch_offsets;    // one where there is one B
  std::vector<std::int64_t> segment_offsets;  // empty: one segment at 0
  std::int64_t taps = 1, channels = 0;        // taps * channels is the depth of a segment
  std::int64_t column_stride = 0, tap_stride = 0, channel_stride = 0;
};

// B packed, with what must be added to each column's sums because of its and A's sign.
class QuadPanels {
 public:
  QuadPanels() = default;
  explicit QuadPanels(const QuadShape& shape);
  std::int64_t bytes() const { return batches_ * batch_bytes_; }
  static std::int64_t most_bytes(const QuadShape& shape);  // on any processor
  std::int64_t panels() const { return panels_; }
  std::int64_t batches() const { return batches_; }

  // One panel of one batch; `memory` is the start of bytes(), aligned to kWorkspaceAlignment.
  void pack(const QuadColumnSource& source, const std::uint8_t* data, std::int64_t batch,
            std::int64_t panel, std::byte* memory) const;
  void pack_all(const QuadColumnSource& source, const std::uint8_t* data, std::byte* memory) const;

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
  QuadPanels(const QuadShape& shape, std::int64_t panel_columns);
  std::int64_t of(std::int64_t batch) const { return batches_ == 1 ? 0 : batch * batch_bytes_; }
  void pack_segment(const QuadColumnSource& source, const std::uint8_t* data, std::int64_t columns,
                    std::int8_t* panel) const;

  QuadShape shape_;
  std::int64_t columns_ = 0, panels_ = 0, batches_ = 0;
  std::int64_t panel_bytes_ = 0, terms_offset_ = 0, batch_bytes_ = 0;
};

// A, line by line.
class QuadRows {
 public:
  virtual ~QuadRows() = default;
  // Null: one segment at 0.
  virtual const std::int64_t* segment_offsets() const = 0;
  // Makes the rows of these lines readable, in place or in `buffer`: writes the offset of each, and
  // returns what it counts from.
  virtual const std::uint8_t* block(std::int64_t batch, std::int64_t line, std::int64_t lines,
                                    std::uint8_t* buffer, std::int64_t* row_offsets) const = 0;
};

// C.
class QuadSink {
 public:
  struct Target {
    void* c = nullptr;     // the first element
    std::int64_t row = 0;  // elements to the next row
  };
  virtual ~QuadSink() = default;
  // Where a tile is stored as it is; used where QuadMemory::sums_bytes is 0.
  virtual Target target(std::int64_t batch, std::int64_t row, std::int64_t column) const = 0;
  // Takes rows [row, row + rows) and columns [column, column + columns).
  virtual void store(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns, const std::int32_t* sums,
                     std::int64_t sums_row) const = 0;
};

// Scratch of a product, per cell. Parts of 0 bytes are not needed.
struct QuadMemory {
  std::int64_t staged_bytes = 0, sums_bytes = 0, row_term_bytes = 0, offset_bytes = 0;
  std::int64_t cell_bytes() const {
    return staged_bytes + sums_bytes + row_term_bytes + offset_bytes;
  }
};
// `staged_bytes`: of A for a block.
QuadMemory quad_memory(const QuadShape& shape, const QuadBlocks& blocks, std::int64_t staged_bytes,
                       bool stores_in_place);

struct QuadWork {
  const QuadShape& shape;
  const QuadBlocks& blocks;
  const QuadMemory& memory;
  const QuadPanels& panels;
  QuadResult result;                // where stored in place
  const QuadColumnSource* source;   // null: packed already
  const std::uint8_t* source_data;  // B's first byte
  std::byte* packed;
  std::byte* cells;  // cell_bytes() each
};
void quad_gemm(const QuadWork& work, const QuadRows& a, const QuadSink& sink);

}  // namespace ashlar::cpu
