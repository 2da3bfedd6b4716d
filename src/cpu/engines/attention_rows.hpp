// Loads rows of q, k, v and gradients into tiles: padded, packed, and through page tables.
#pragma once

#include "cpu/engines/attention_gemm.hpp"
#include "cpu/engines/attention_mask.hpp"
#include "cpu/ragged_rows.hpp"
#include "cpu/transpose_rows.hpp"

namespace ashlar::cpu {

// Rows of k or v: row j of batch b, directly or through a page table.
template <class T>
class KeyRows {
 public:
  KeyRows() = default;
  KeyRows(const Graph& graph, const Region& region, int slot, int table_slot)
      : rows_(input_program(region, slot), 3, graph), pages_(region, slot, table_slot) {}

  class Bound {
   public:
    Bound(const KeyRows& keys, const KernelContext& context)
        : keys_(&keys), context_(&context), rows_(keys.rows_.bind(context)) {}
    // Loads row `at` = {b, head, j, 0}; 0 if its page is missing.
    void load(const Coords& at, std::int64_t width, T* destination) const {
      const PageTable& pages = keys_->pages_;
      if (!pages.present()) return rows_.load(at, width, destination);
      const std::int64_t block = pages.block(*context_, at[0], at[2]);
      if (block < 0) return void(std::fill_n(destination, width, T{0}));
      rows_.load({block, at[1], at[2] % pages.page_size(), 0}, width, destination);
    }
    // Rows from `at` on and their stride if they can be read in place; else null.
    std::pair<const T*, std::int64_t> in_place(const Coords& at) const {
      if (keys_->pages_.present()) return {nullptr, 0};
      const T* row = rows_.in_place(at);
      if (row == nullptr) return {nullptr, 0};
      return {row, rows_.in_place({at[0], at[1], at[2] + 1, 0}) - row};
    }

   private:
    const KeyRows* keys_;
    const KernelContext* context_;
    typename RaggedRows<T>::Bound rows_;
  };

 private:
  RaggedRows<T> rows_;
  PageTable pages_;
};

// Loads `count` rows [b, head, first + r, :] to destination[r * row_length], zero in the padding.
// Rows from `length` on are not read and become zero: a zero weight does not cancel NaN.
template <class T, class Rows>
void load_rows(const Rows& rows, std::int64_t b, std::int64_t head, std::int64_t first,
               std::int64_t count, std::int64_t length, std::int64_t width, std::int64_t row_length,
               T* destination) {
  for (std::int64_t r = 0; r < count; ++r) {
    T* row = destination + r * row_length;
    const std::int64_t read = first + r < length ? width : 0;
    if (read > 0) rows.load({b, head, first + r, 0}, read, row);
    std::fill(row + read, row + row_length, T{0});
  }
}

// Transposes `rows` rows (a multiple of `columns`) into panels of `columns` rows, `width` deep.
template <class T>
void transpose_to_panels(const T* source, std::int64_t source_row, std::int64_t rows,
                         std::int64_t width, std::int64_t columns, T* panels) {
  for (std::int64_t first = 0; first < rows; first += columns)
    transpose_rows(source + first * source_row, source_row, columns, width, panels + first * width,
                   columns);
}

// Whether all `count` elements are finite.
template <class T>
bool all_finite(const RowOps<T>& ops, const T* data, std::int64_t count) {
  return ops.fold(Fold::maximum, Premap::absolute, data, count) <
         std::numeric_limits<T>::infinity();
}

}  // namespace ashlar::cpu
