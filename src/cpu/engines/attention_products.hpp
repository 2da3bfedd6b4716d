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

// A left operand, read where it lies, and the result.
template <class T>
struct TileRows {
  std::int64_t count;
  const T* data;
  std::int64_t row;
  T* result;
  std::int64_t result_row;
};

template <class T>
class TileMultiplier {
 public:
  std::int64_t rows() const { return product_.rows; }
  std::int64_t columns() const { return product_.columns; }  // of a panel
  std::int64_t panels(std::int64_t columns) const {
    return (columns + product_.columns - 1) / product_.columns;
  }
  // At most rows() rows times panel `p`, to columns [p * columns(), ...) of the result.
  void block(const TileRows<T>& rows, const TilePanels<T>& panels, std::int64_t p,
             std::int64_t depth, bool accumulate) const {
    PanelOperands<T> o;
    o.rows = rows.count, o.columns = product_.columns;
    o.a = rows.data, o.a_row = rows.row, o.depth = depth;
    o.b = panels.data + p * panels.panel, o.b_row = panels.row;
    o.c = rows.result + p * product_.columns, o.c_row = rows.result_row;
    o.accumulate = accumulate;
    product_.strided(o);
  }

 private:
  const PanelProduct<T>& product_ = panel_product<T>();
};

}  // namespace ashlar::cpu
