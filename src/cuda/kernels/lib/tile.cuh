// Square tiles in shared memory, element [column][row], accessed along both axes (transposes).
#pragma once

// Padded by one element: neighbours along either axis are in different banks.
template <class R, int kEdge>
struct Tile {
  R elements[kEdge][kEdge + 1];
};

template <int kCount, class R, int kEdge>
__device__ inline void keep(Tile<R, kEdge>& tile, int column, int row, const R (&values)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) tile.elements[column][row + l] = values[l];
}
template <int kCount, class R, int kEdge>
__device__ inline void take_along(const Tile<R, kEdge>& tile, int column, int row,
                                  R (&values)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) values[l] = tile.elements[column][row + l];
}
template <int kCount, class R, int kEdge>
__device__ inline void keep_across(Tile<R, kEdge>& tile, int column, int row,
                                   const R (&values)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) tile.elements[column + l][row] = values[l];
}
template <int kCount, class R, int kEdge>
__device__ inline void take_across(const Tile<R, kEdge>& tile, int column, int row,
                                  R (&values)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) values[l] = tile.elements[column + l][row];
}
