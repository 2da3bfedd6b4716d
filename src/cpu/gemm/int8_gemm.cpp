// The blocked int8 GEMM: thread tiles, blocking, zero-point corrections.
#include "cpu/gemm/int8_gemm.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr double kOperationsWorthAThread = 1e6;
constexpr double kMeetingCycles = 10e3;  // cost of a barrier
constexpr std::int64_t kLanes = 16;      // i32 lanes of the widest vector: granularity of N
constexpr std::int64_t kLine = 64;       // cache line in bytes: alignment of the parts of scratch

double real(std::int64_t n) { return static_cast<double>(n); }

// Parts that differ in size by at most one.
struct Range {
  std::int64_t begin, end;
  Range(std::int64_t count, std::int64_t parts, std::int64_t part)
      : begin(count * part / parts), end(count * (part + 1) / parts) {}
};

// Whether each thread packs the panels of B it uses, right before their first use. Panels shared by
// several threads, and the row sums of A that every thread needs, are packed up front.
bool threads_pack(const Int8GemmWork& work) {
  return work.source != nullptr && work.blocks.thread_rows == 1 && work.shape.b_signed;
}

// The part of C that one thread computes.
class ThreadTile {
 public:
  ThreadTile(const Int8GemmWork& work, const Int8Rows& a, const Int8Sink& sink, std::int64_t number)
      : work_(work),
        shape_(work.shape),
        a_(a),
        sink_(sink),
        kernel_(int8_micro_kernel()),
        panels_(work.panels.panels(), work.blocks.thread_columns,
                number % work.blocks.thread_columns),
        lines_(shape_.batch * shape_.lines, work.blocks.thread_rows,
               number / work.blocks.thread_columns) {
    std::byte* memory = work.cells + number * work.memory.thread_bytes();
    staged_ = reinterpret_cast<std::uint8_t*>(memory);
    acc_ = reinterpret_cast<std::int32_t*>(memory + work.memory.staged_bytes);
    memory += work.memory.staged_bytes + work.memory.acc_bytes;
    row_terms_ = reinterpret_cast<std::int32_t*>(memory);
    row_offsets_ = reinterpret_cast<std::int64_t*>(memory + work.memory.row_term_bytes);
  }

  void run() const {
    const std::int64_t most = work_.blocks.lines(shape_);
    std::int64_t packed_batch = -1;  // batch whose panels are packed
    for (std::int64_t line = lines_.begin; line < lines_.end;) {
      const std::int64_t batch = line / shape_.lines, first = line % shape_.lines;
      const std::int64_t lines = std::min({most, shape_.lines - first, lines_.end - line});
      const bool pack =
          threads_pack(work_) && (packed_batch < 0 || (!shape_.one_b && packed_batch != batch));
      run_block(batch, first, lines, pack);
      packed_batch = batch;
      line += lines;
    }
  }

 private:
  void run_block(std::int64_t batch, std::int64_t line, std::int64_t lines, bool pack) const {
    const std::int64_t first = line * shape_.width;
    const std::int64_t rows = std::min(lines * shape_.width, shape_.rows - first);
    const std::uint8_t* a = a_.block(batch, line, lines, staged_, row_offsets_);
    const Int8Panels& panels = work_.panels;
    if (!shape_.b_signed) sum_rows(a, batch, rows);
    const std::int64_t columns = kernel_.columns;
    Int8MicroArgs o = operands(a);
    const auto multiply = [&](std::int64_t p, const Range& part) {
      o.columns = std::min(columns, shape_.columns - p * columns);
      o.b = panels.panel(batch, p, work_.packed);
      o.column_start = shape_.a_signed ? panels.terms(batch, p, work_.packed) : nullptr;
      o.rows = part.end - part.begin;
      o.row_offsets = row_offsets_ + part.begin;
      o.row_start = shape_.b_signed ? nullptr : row_terms_ + part.begin;
      if (work_.memory.acc_bytes == 0) {
        const Int8Sink::Target target = sink_.target(batch, first + part.begin, p * columns);
        o.c = target.c;
        o.c_row = target.row;
      } else {
        o.c = acc_ + part.begin * acc_row() + (p - panels_.begin) * columns;
        o.c_row = acc_row();
      }
      kernel_.multiply(o);
    };
    // Panels of small K stay in cache: C is then written in groups of whole rows.
    constexpr std::int64_t kShallowBytes = 256 << 10, kTilesAtOnce = 8;
    const std::int64_t k = shape_.segments * shape_.quads() * 4;
    const bool shallow = (panels_.end - panels_.begin) * columns * k <= kShallowBytes;
    const std::int64_t parts = shallow ? divide_up(rows, kTilesAtOnce * kernel_.rows) : 1;
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t p = panels_.begin; p < panels_.end; ++p) {
        if (pack && part == 0)
          panels.pack(*work_.source, work_.source_data, batch, p, work_.packed);
        multiply(p, Range(rows, parts, part));
      }
    if (work_.memory.acc_bytes == 0 || panels_.begin == panels_.end) return;
    const std::int64_t column = panels_.begin * columns;
    sink_.store(batch, first, rows, column,
                std::min(panels_.end * columns, shape_.columns) - column, acc_, acc_row());
  }

  // An odd number of cache lines, so that rows map to different cache sets.
  std::int64_t acc_row() const { return (panels_.end - panels_.begin) * kernel_.columns | 16; }

  Int8MicroArgs operands(const std::uint8_t* a) const {
    Int8MicroArgs o;
    o.a = a;
    o.segments = shape_.segments;
    o.quads = shape_.quads();
    o.segment_offsets = a_.segment_offsets();
    o.result = work_.memory.acc_bytes == 0 ? work_.result : Int8Output::i32;
    return o;
  }

  // The correction of each row for an unsigned B: see Int8Panels::pack.
  void sum_rows(const std::uint8_t* a, std::int64_t batch, std::int64_t rows) const {
    constexpr std::uint32_t kShift = 128;
    Int8MicroArgs o = operands(a);
    o.columns = kernel_.columns;
    o.b = work_.panels.ones(batch, work_.packed);
    alignas(64) std::int32_t acc[kMaxInt8Rows * kMaxInt8Columns];
    o.c = acc;
    o.c_row = kMaxInt8Columns;
    o.result = Int8Output::i32;
    for (std::int64_t row = 0; row < rows; row += o.rows) {
      o.rows = std::min(kernel_.rows, rows - row);
      o.row_offsets = row_offsets_ + row;
      kernel_.multiply(o);
      for (std::int64_t i = 0; i < o.rows; ++i)
        row_terms_[row + i] =
            static_cast<std::int32_t>(kShift * static_cast<std::uint32_t>(acc[i * o.c_row]));
    }
  }

  const Int8GemmWork& work_;
  const Int8GemmShape& shape_;
  const Int8Rows& a_;
  const Int8Sink& sink_;
  const Int8MicroKernel& kernel_;
  Range panels_, lines_;
  std::uint8_t* staged_;
  std::int32_t* acc_;
  std::int32_t* row_terms_;
  std::int64_t* row_offsets_;
};

}  // namespace

double Int8GemmShape::operations() const {
  return 2.0 * real(batch) * real(rows) * real(round_up(columns, kLanes)) *
         real(segments * quads() * 4);
}

void Int8GemmBlocks::to_knobs(Config& config) const {
  config.knobs = {{"rows", rows}, {"thread_rows", thread_rows}, {"thread_columns", thread_columns}};
}

Int8GemmBlocks Int8GemmBlocks::from_knobs(const Config& config) {
  return {.rows = config.knob("rows"),
          .thread_rows = config.knob("thread_rows"),
          .thread_columns = config.knob("thread_columns")};
}

std::int64_t Int8GemmBlocks::lines(const Int8GemmShape& shape) const {
  return std::clamp<std::int64_t>(rows / std::max<std::int64_t>(shape.width, 1), 1,
                                  std::max<std::int64_t>(shape.lines, 1));
}

Int8GemmBlocks choose_int8_blocks(const Int8GemmShape& shape, const DeviceProps& device,
                                  std::int64_t row_bytes) {
  Int8GemmBlocks blocks;
  // A block's rows of A and accumulators use half of L2; panels of B stream through the rest.
  blocks.rows = std::max<std::int64_t>(device.l2_bytes / 2 / std::max<std::int64_t>(row_bytes, 1),
                                       shape.width);
  blocks.rows = std::min(blocks.rows, shape.lines * shape.width);
  const std::int64_t worth =
      static_cast<std::int64_t>(shape.operations() / kOperationsWorthAThread);
  const std::int64_t threads =
      std::clamp<std::int64_t>(worth, 1, std::max(device.compute_units, 1));
  // Cycles of a thread tile: 256 operations or 16 bytes of operands per cycle.
  const std::int64_t units = shape.batch * shape.lines;
  const std::int64_t panels = divide_up(shape.columns, kMaxInt8Columns);
  const double k = real(shape.segments * shape.quads() * 4);
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t columns = 1; columns <= threads; ++columns) {
    if (threads % columns != 0) continue;
    const double unit_rows = real(divide_up(units, threads / columns) * shape.width);
    const double thread_tile_columns = real(divide_up(panels, columns) * kMaxInt8Columns);
    double cycles =
        unit_rows * thread_tile_columns * k * 2 / 256 + (unit_rows + thread_tile_columns) * k / 16;
    if (shape.a_signed) cycles += unit_rows * k / 8;  // every thread stages A
    if (columns < threads) cycles += kMeetingCycles;  // barrier after packing the panels
    if (cycles >= best) continue;
    best = cycles;
    blocks.thread_columns = columns;
    blocks.thread_rows = threads / columns;
  }
  return blocks;
}

Int8GemmScratch int8_gemm_scratch(const Int8GemmShape& shape, const Int8GemmBlocks& blocks,
                                  std::int64_t staged_bytes, bool stores_in_place) {
  const std::int64_t rows = blocks.lines(shape) * shape.width;
  Int8GemmScratch memory;
  memory.staged_bytes = round_up(staged_bytes, kLine);
  memory.offset_bytes = round_up(checked_mul(rows, sizeof(std::int64_t)), kLine);
  if (!stores_in_place) {
    const std::int64_t panels =
        divide_up(divide_up(shape.columns, kMaxInt8Columns), blocks.thread_columns);
    // Panels may be narrower than kMaxInt8Columns and then split less evenly: one extra.
    memory.acc_bytes = checked_mul(rows, ((panels + 1) * kMaxInt8Columns + 16) * 4);
    memory.acc_bytes = round_up(memory.acc_bytes, kLine);
  }
  if (!shape.b_signed) memory.row_term_bytes = round_up(rows * 4, kLine);
  return memory;
}

void int8_gemm(const Int8GemmWork& work, const Int8Rows& a, const Int8Sink& sink) {
  const Int8GemmShape& shape = work.shape;
  if (shape.batch == 0 || shape.rows == 0 || shape.columns == 0) return;
  if (work.source != nullptr && !threads_pack(work))
    work.panels.pack_all(*work.source, work.source_data, work.packed);
  parallel_for(work.blocks.thread_rows * work.blocks.thread_columns, 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t number = begin; number < end; ++number)
                   ThreadTile(work, a, sink, number).run();
               });
}

}  // namespace ashlar::cpu
