// Attention mask: bounds, sequence lengths, block mask, and missing pages.
#pragma once

#include "cpu/engines/attention_shape.hpp"
#include "cpu/integer_operand.hpp"

namespace ashlar::cpu {

// Page table: key j of batch b is in row j % page_size() of a block of the container.
class PageTable {
 public:
  PageTable() = default;
  PageTable(const Region& region, int container_slot, int table_slot)
      : table_(input_program(region, table_slot)) {
    const Dims& dims = region.anchor->inputs[static_cast<std::size_t>(container_slot)].dims;
    blocks_ = dims[0], page_size_ = dims[2];
  }
  bool present() const { return table_.present(); }
  std::int64_t page_size() const { return page_size_; }
  // The block of key j; -1 if the table entry is out of range.
  std::int64_t block(const KernelContext& context, std::int64_t b, std::int64_t j) const {
    const std::int64_t block = table_.load(context, {b, 0, j / page_size_, 0}, -1);
    return block >= 0 && block < blocks_ ? block : -1;
  }

 private:
  IntegerOperand table_;
  std::int64_t blocks_ = 0, page_size_ = 1;
};

// Per-batch mask parameters.
struct AttentionBatch {
  std::int64_t queries, keys;  // lengths
  std::int64_t shift;          // the diagonal of row i is column i + shift
};

template <class T, class Attention>
class AttentionMask {
 public:
  AttentionMask(const Region& region, const AttentionShape& shape)
      : shape_(shape),
        op_(*region.anchor_as<Attention>()),
        query_lengths_(input_program(region, Attention::seq_len_q)),
        key_lengths_(input_program(region, Attention::seq_len_kv)),
        blocks_(input_program(region, Attention::block_mask),
                {shape.batch, shape.heads, blocks(shape.queries, op_.block_rows),
                 blocks(shape.keys, op_.block_columns)},
                3),
        pages_{PageTable(region, Attention::k, Attention::page_table_k),
               PageTable(region, Attention::v, Attention::page_table_v)} {}

  class Bound {
   public:
    Bound(const AttentionMask& mask, const KernelContext& context)
        : mask_(&mask), context_(&context), blocks_(mask.blocks_.bind(context)) {}

    AttentionBatch batch(std::int64_t b) const {
      const Coords at = {b};
      const AttentionShape& shape = mask_->shape_;
      const std::int64_t rows = std::clamp<std::int64_t>(
          mask_->query_lengths_.load(*context_, at, shape.queries), 0, shape.queries);
      const std::int64_t all = std::clamp<std::int64_t>(
          mask_->key_lengths_.load(*context_, at, shape.keys), 0, shape.keys);
      const bool bottom_right = mask_->op_.alignment == MaskAlignment::bottom_right;
      return {rows, all, bottom_right ? all - rows : 0};
    }
    // The columns that bounds and lengths leave visible to row i.
    ScoreColumns columns(const AttentionBatch& batch, std::int64_t i) const {
      if (i >= batch.queries) return {};
      const Attention& op = mask_->op_;
      const std::int64_t diagonal = i + batch.shift;
      ScoreColumns seen{0, batch.keys};
      // Compared first, so that the additions cannot overflow.
      if (op.left_bound && *op.left_bound <= diagonal) seen.begin = diagonal - *op.left_bound + 1;
      if (op.right_bound && *op.right_bound < batch.keys - diagonal)
        seen.end = diagonal + *op.right_bound + 1;
      return seen;
    }
    // The columns visible to any of the rows [first, first + count).
    ScoreColumns columns(const AttentionBatch& batch, std::int64_t first,
                         std::int64_t count) const {
      ScoreColumns all{batch.keys, 0};
      for (std::int64_t i = first; i < first + count; ++i) {
        const ScoreColumns seen = columns(batch, i);
        if (!seen.empty()) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
      }
      return all;
    }

    // Whether a block mask or page table may mask columns inside the bounds.
    bool has_holes() const {
      return blocks_.present() || mask_->pages_[0].present() || mask_->pages_[1].present();
    }
    // Whether the block mask masks all of these rows and columns (of one tile).
    bool hides(std::int64_t b, std::int64_t h, std::int64_t first_row, std::int64_t rows,
               ScoreColumns columns) const {
      if (!blocks_.present() || columns.empty()) return false;
      const std::int64_t height = mask_->op_.block_rows;
      for (std::int64_t row = first_row / height; row <= (first_row + rows - 1) / height; ++row) {
        bool visible[kKeyTile] = {};
        show_blocks(b, h, row, columns, visible);
        if (std::any_of(visible, visible + columns.size(), [](bool bit) { return bit; }))
          return false;
      }
      return true;
    }
    // Calls body(run) for the unmasked runs of `seen` (columns of one tile) of row i.
    template <class Body>
    void for_each_run(std::int64_t b, std::int64_t h, std::int64_t i, ScoreColumns seen,
                      Body&& body) const {
      if (seen.empty()) return;
      if (!has_holes()) return body(seen);
      bool visible[kKeyTile];
      std::fill_n(visible, seen.size(), !blocks_.present());
      show_blocks(b, h, i / mask_->op_.block_rows, seen, visible);
      for (const PageTable& pages : mask_->pages_) hide_missing(pages, b, seen, visible);
      const bool* end = visible + seen.size();
      for (const bool* at = visible; at < end;) {
        const bool* first = std::find(at, end, true);
        at = std::find(first, end, false);
        if (first < at)
          body(ScoreColumns{seen.begin + (first - visible), seen.begin + (at - visible)});
      }
    }
    // Writes `value` to the masked columns of a row that begins at column seen.begin.
    void overwrite_holes(std::int64_t b, std::int64_t h, std::int64_t i, ScoreColumns seen, T value,
                         T* row) const {
      if (!has_holes()) return;
      std::int64_t done = seen.begin;
      for_each_run(b, h, i, seen, [&](ScoreColumns run) {
        std::fill(row + (done - seen.begin), row + (run.begin - seen.begin), value);
        done = run.end;
      });
      std::fill(row + (done - seen.begin), row + seen.size(), value);
    }

   private:
    // Sets visible[j - columns.begin] for the columns in visible blocks.
    void show_blocks(std::int64_t b, std::int64_t h, std::int64_t block_row, ScoreColumns columns,
                     bool* visible) const {
      if (!blocks_.present()) return;
      const std::int64_t width = mask_->op_.block_columns, first = columns.begin / width;
      const std::int64_t count = (columns.end - 1) / width - first + 1;
      T bits[kKeyTile + 1];
      static constexpr T kVisible = 1;
      const RowArg<T> row = blocks_.load({b, h, block_row, first}, count, bits, &kVisible);
      for (std::int64_t at = 0; at < count; ++at) {
        if (row.data[row.per_element ? at : 0] == T{0}) continue;
        const ScoreColumns block = columns.within({(first + at) * width, (first + at + 1) * width});
        std::fill_n(visible + (block.begin - columns.begin), block.size(), true);
      }
    }
    void hide_missing(const PageTable& pages, std::int64_t b, ScoreColumns columns,
                      bool* visible) const {
      if (!pages.present()) return;
      const std::int64_t size = pages.page_size();
      for (std::int64_t j = columns.begin; j < columns.end; j = (j / size + 1) * size) {
        if (pages.block(*context_, b, j) >= 0) continue;
        const ScoreColumns page = columns.within({j, (j / size + 1) * size});
        std::fill_n(visible + (page.begin - columns.begin), page.size(), false);
      }
    }

    const AttentionMask* mask_;
    const KernelContext* context_;
    typename Operand<T>::Bound blocks_;
  };

 private:
  static std::int64_t blocks(std::int64_t extent, std::int64_t block) {
    return extent / block + (extent % block != 0);
  }

  AttentionShape shape_;
  Attention op_;
  IntegerOperand query_lengths_, key_lengths_;
  Operand<T> blocks_;
  std::array<PageTable, 2> pages_;  // of k and v
};

}  // namespace ashlar::cpu
