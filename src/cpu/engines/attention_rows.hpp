// Rows of q, k, v and gradients on their way to tiles: padded, transposed, found through page
// tables.
#pragma once

#include "cpu/engines/attention_mask.hpp"
#include "cpu/guarded_rows.hpp"
#include "cpu/kernels/tile_product.hpp"

namespace ashlar::cpu {

// k or v: row j of batch b stands there itself, or in the page that a table names.
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
    // Row `at` = {b, head, j, 0}; 0 where its page is missing.
    void load(const Coords& at, std::int64_t width, T* destination) const {
      const PageTable& pages = keys_->pages_;
      if (!pages.present()) return rows_.load(at, width, destination);
      const std::int64_t block = pages.block(*context_, at[0], at[2]);
      if (block < 0) return void(std::fill_n(destination, width, T{0}));
      rows_.load({block, at[1], at[2] % pages.page_size(), 0}, width, destination);
    }

   private:
    const KeyRows* keys_;
    const KernelContext* context_;
    typename GuardedRows<T>::Bound rows_;
  };

 private:
  GuardedRows<T> rows_;
  PageTable pages_;
};

// Loads `count` rows [b, head, first + r, :] to destination[r * row_length], zero in the padding.
// Rows from `length` on are not read and become zero: a weight of zero does not stop a NaN there.
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

// destination[d * kKeyTile + r] = source[r * row_length + d]; columns past `count` become 0.
template <class T>
void transpose_tile(const T* source, std::int64_t row_length, std::int64_t count,
                    std::int64_t width, T* destination) {
  constexpr std::int64_t kBlock = 16;  // a cache line of either side
  for (std::int64_t r0 = 0; r0 < kKeyTile; r0 += kBlock)
    for (std::int64_t d = 0; d < width; ++d)
      for (std::int64_t r = r0; r < r0 + kBlock; ++r)
        destination[d * kKeyTile + r] = r < count ? source[r * row_length + d] : T{0};
}

// Whether all of `count` elements are numbers below infinity.
template <class T>
bool all_finite(const RowOps<T>& ops, const T* data, std::int64_t count) {
  return ops.fold(Fold::maximum, Premap::absolute, data, count) <
         std::numeric_limits<T>::infinity();
}

}  // namespace ashlar::cpu
