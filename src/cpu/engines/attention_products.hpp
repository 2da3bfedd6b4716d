// Products of tiles that lie in cache: rows of one meet panels of the other.
#pragma once

#include "cpu/kernels/attention_tile.hpp"
#include "cpu/kernels/panel_product.hpp"

namespace ashlar::cpu {

// Rows of tiles are as long as whole panels, whatever the vector length.
template <class T>
constexpr std::int64_t padded_to_panel(std::int64_t n) {
  return (n + kPanelColumnMultiple<T> - 1) / kPanelColumnMultiple<T> * kPanelColumnMultiple<T>;
}

// Where panels of a right operand lie: row l of panel p starts at data + p * panel + l * row.
template <class T>
struct TilePanels {
  const T* data;
  std::int64_t panel, row;
};

template <class T>
class TileMultiplier {
 public:
  std::int64_t rows() const { return product_.rows; }
  std::int64_t columns() const { return product_.columns; }  // of a panel
  std::int64_t panels(std::int64_t columns) const {
    return (columns + product_.columns - 1) / product_.columns;
  }
  // At most rows() rows times a panel: C = A B, or C += A B. A is read where it lies.
  struct Block {
    std::int64_t rows, depth;
    const T* a;
    std::int64_t a_row;
    const T* b;
    std::int64_t b_row;
    T* c;
    std::int64_t c_row;
    bool accumulate;
    std::int64_t columns = 0;  // 0: all of a panel
  };
  void operator()(const Block& block) const { multiply(block, 1, nullptr); }
  // The depth of A in `segments` parts of block.depth, at these offsets.
  void multiply(const Block& block, std::int64_t segments, const std::int64_t* offsets) const {
    PanelOperands<T> o;
    o.rows = block.rows, o.columns = block.columns > 0 ? block.columns : product_.columns;
    o.a = block.a, o.a_row = block.a_row;
    o.segments = segments, o.depth = block.depth, o.segment_offsets = offsets;
    o.b = block.b, o.b_row = block.b_row;
    o.c = block.c, o.c_row = block.c_row;
    o.accumulate = block.accumulate;
    product_.strided(o);
  }

 private:
  const PanelProduct<T>& product_ = panel_product<T>();
};

}  // namespace ashlar::cpu
