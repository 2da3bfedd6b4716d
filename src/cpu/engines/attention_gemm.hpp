// GEMM on tiles in cache: rows of A times panels of B.
#pragma once

#include "cpu/kernels/attention_tile.hpp"
#include "cpu/kernels/gemm_micro_kernel.hpp"

namespace ashlar::cpu {

// Row length of a tile: whole panels for any vector length.
template <class T>
constexpr std::int64_t padded_to_panel(std::int64_t n) {
  return (n + kPanelColumnMultiple<T> - 1) / kPanelColumnMultiple<T> * kPanelColumnMultiple<T>;
}

// Panels of B: row l of panel p starts at data + p * panel + l * row.
template <class T>
struct TilePanels {
  const T* data;
  std::int64_t panel, row;
};

template <class T>
class TileGemm {
 public:
  std::int64_t rows() const { return gemm_.rows; }
  std::int64_t columns() const { return gemm_.columns; }  // NR
  std::int64_t panels(std::int64_t columns) const {
    return (columns + gemm_.columns - 1) / gemm_.columns;
  }
  // At most rows() rows times a panel: C = A B, or C += A B. A is read in place.
  struct Block {
    std::int64_t rows, k;
    const T* a;
    std::int64_t a_row;
    const T* b;
    std::int64_t b_row;
    T* c;
    std::int64_t c_row;
    bool accumulate;
    std::int64_t columns = 0;  // 0: the whole panel
  };
  void operator()(const Block& block) const { multiply(block, 1, nullptr); }
  // K of A in `segments` segments of block.k, at these offsets.
  void multiply(const Block& block, std::int64_t segments, const std::int64_t* offsets) const {
    GemmMicroArgs<T> o;
    o.rows = block.rows, o.columns = block.columns > 0 ? block.columns : gemm_.columns;
    o.a = block.a, o.a_row = block.a_row;
    o.segments = segments, o.k = block.k, o.segment_offsets = offsets;
    o.b = block.b, o.b_row = block.b_row;
    o.c = block.c, o.c_row = block.c_row;
    o.accumulate = block.accumulate;
    gemm_.strided(o);
  }

 private:
  const GemmMicroKernel<T>& gemm_ = gemm_micro_kernel<T>();
};

}  // namespace ashlar::cpu
