// Counts, masks and expansions composed of pointwise operations.
#include <array>
#include <ashlar/composites.hpp>

#include "graph/borrowed_graph.hpp"

namespace ashlar {

namespace {

// The coordinate along `axis` of a tensor of `dims`.
Value coordinate(Graph& graph, const Dims& dims, std::int64_t axis, DType dtype) {
  const Value nothing = graph.constant(0.0, dtype, dims.rank());
  return graph.pointwise(PointwiseMode::gen_index, std::array{nothing}, {.axis = axis},
                         {.dtype = dtype, .dims = dims});
}

// mode(column, row + diagonal), along the last two axes of dims.
Value diagonal_mask(Graph& graph, PointwiseMode mode, const Dims& dims, std::int64_t diagonal) {
  if (dims.rank() < 2)
    fail(ErrorCode::invalid_argument, "a triangle: rank: got {}, expected at least 2 axes",
         dims.rank());
  // f32 where it is exact: integers would make the whole program compute in f64.
  constexpr std::int64_t kExact = 1 << 24;
  const std::int64_t rows = dims[dims.rank() - 2], columns = dims[dims.rank() - 1];
  const bool is_small =
      rows < kExact / 2 && columns < kExact && diagonal < kExact / 2 && diagonal > -kExact / 2;
  const DType dtype = is_small ? f32 : i64;
  Value row = coordinate(graph, dims, -2, dtype);
  if (diagonal != 0) row = row + graph.constant(static_cast<double>(diagonal), dtype, dims.rank());
  return graph.pointwise(mode, std::array{coordinate(graph, dims, -1, dtype), row});
}

Value masked(Value x, PointwiseMode mode, std::int64_t diagonal) {
  BorrowedGraph graph(x);
  const Dims dims = x.dims();
  const Value zero = graph->constant(0.0, x.dtype(), dims.rank());
  return select(diagonal_mask(*graph, mode, dims, diagonal), x, zero);
}

}  // namespace

Value iota(Graph& graph, const Dims& dims, std::int64_t axis, DType dtype, double start,
           double step) {
  if (start == 0.0 && step == 1.0) return coordinate(graph, dims, axis, dtype);
  const DType exact = dtype == f64 || dtype == i64 ? dtype : is_floating(dtype) ? f32 : i32;
  const Value index = coordinate(graph, dims, axis, exact);
  return graph.pointwise(PointwiseMode::add,
                         std::array{index, graph.constant(start, exact, dims.rank())},
                         {.alpha1 = step}, {.dtype = dtype});
}

Value full(Graph& graph, const Dims& dims, double value, DType dtype) {
  return graph.pointwise(PointwiseMode::identity,
                         std::array{graph.constant(value, dtype, dims.rank())}, {}, {.dims = dims});
}

Value expand(Value x, const Dims& dims) {
  return BorrowedGraph(x)->pointwise(PointwiseMode::identity, std::array{x}, {}, {.dims = dims});
}

Value cast_truncate(Value x, DType dtype) {
  return BorrowedGraph(x)->pointwise(PointwiseMode::trunc, std::array{x}, {}, {.dtype = dtype});
}

Value one_hot(Value indices, std::int64_t classes, DType dtype) {
  BorrowedGraph graph(indices);
  Dims dims = indices.dims();
  dims.push_back(1);
  const Value column = graph->reshape(indices, dims);
  dims[dims.rank() - 1] = classes;
  const Value is_class =
      pointwise(PointwiseMode::cmp_eq, column, coordinate(*graph, dims, -1, i32));
  return dtype == boolean ? is_class : cast(is_class, dtype);
}

Value triangle(Graph& graph, std::int64_t rows, std::int64_t columns, std::int64_t diagonal) {
  return diagonal_mask(graph, PointwiseMode::cmp_le, {rows, columns}, diagonal);
}
Value tril(Value x, std::int64_t diagonal) { return masked(x, PointwiseMode::cmp_le, diagonal); }
Value triu(Value x, std::int64_t diagonal) { return masked(x, PointwiseMode::cmp_ge, diagonal); }

}  // namespace ashlar
