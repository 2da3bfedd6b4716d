// Rows of attention's operands that a warp reads from memory, where a row is computed again without
// the tensor cores. Requires Element.
#include "lib/elements.cuh"

template <class Pointer>
__device__ inline const typename Element::Word* row_of(Pointer data, const int64 (&strides)[3],
                                                       int batch, int head, int row) {
  return (const typename Element::Word*)data +
         (batch * strides[0] + head * strides[1] + row * strides[2]);
}

// Elements of columns lane, lane + 32...; zeros past `columns`.
template <int kCount>
__device__ inline void load_strip(const typename Element::Word* row, int lane, int columns,
                                  float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int column = 32 * i + lane;
    values[i] = column < columns ? widen(Element(), row[column]) : 0;
  }
}
