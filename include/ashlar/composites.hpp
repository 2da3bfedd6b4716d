// Counts, masks and expansions as free functions: compositions of pointwise operations. They need
// no memory where they are fused into the operation that reads them.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar {

#pragma GCC visibility push(default)

// start + step * i, with i the coordinate along `axis` of a tensor of `dims`.
Value iota(Graph& graph, const Dims& dims, std::int64_t axis = -1, DType dtype = i32,
           double start = 0.0, double step = 1.0);
// A tensor with the same value everywhere.
Value full(Graph& graph, const Dims& dims, double value, DType dtype = f32);
// x broadcast to dims: a view with strides of 0 where the reader supports it.
Value expand(Value x, const Dims& dims);
// x towards zero as in C and PyTorch, where cast() rounds to nearest even. NaN becomes 0 and values
// out of range the nearest end of it.
Value cast_truncate(Value x, DType dtype);

// [..., classes]: 1 at the index, 0 elsewhere; only 0 for an index out of range.
Value one_hot(Value indices, std::int64_t classes, DType dtype = f32);
// A bool matrix, true on and below the diagonal: column <= row + diagonal.
Value triangle(Graph& graph, std::int64_t rows, std::int64_t columns, std::int64_t diagonal = 0);
// The matrices of the last two axes, 0 above (tril) or below (triu) the diagonal.
Value tril(Value x, std::int64_t diagonal = 0);
Value triu(Value x, std::int64_t diagonal = 0);

#pragma GCC visibility pop

}  // namespace ashlar
