// Data movement, and composites written as sequences of primitive operations.
#include <algorithm>
#include <array>
#include <numeric>

#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_view() {
  Value x = old([](const Tensor&) { return true; });
  if (!x) x = input(dims(1 + static_cast<int>(below(4))), arithmetic());
  const Dims extents = x.dims();
  const int rank = extents.rank();
  switch (below(3)) {
    case 0: {
      std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      return keep(graph_.transpose(x, Dims(order)));
    }
    case 1: {
      Dims start, limit, step;
      for (std::int64_t value : extents) {
        start.push_back(below(value / 3 + 1));
        limit.push_back(value - below((value - start[start.rank() - 1]) / 3 + 1));
        step.push_back(chance(0.7) ? 1 : 1 + below(3));
      }
      return keep(graph_.slice(x, start, limit, step));
    }
    default: {
      const std::int64_t count = element_count(extents);
      if (count == 0) return;
      // Merges two adjacent axes, splits an axis, or chooses new extents.
      Dims to;
      const std::int64_t kind = below(3);
      const int axis = static_cast<int>(below(rank));
      if (kind == 0 && rank > 1) {
        for (int i = 0; i < rank; ++i) {
          if (i > 0 && i == std::max(axis, 1))
            to[to.rank() - 1] *= extents[i];
          else
            to.push_back(extents[i]);
        }
      } else if (kind == 1 && rank < 6) {
        for (int i = 0; i < rank; ++i) {
          const bool split = i == axis && extents[i] % 2 == 0;
          to.push_back(split ? 2 : extents[i]);
          if (split) to.push_back(extents[i] / 2);
        }
      } else {
        std::int64_t rest = count;
        for (std::int64_t factor : {2, 3, 5, 7})
          if (rest % factor == 0 && chance(0.6)) {
            to.push_back(factor);
            rest /= factor;
          }
        to.push_back(rest);
      }
      return keep(graph_.reshape(x, to));
    }
  }
}

void GraphMaker::add_concat() {
  const Value x = old([](const Tensor& t) { return element_count(t.dims) < 1500; });
  if (!x) return;
  const int axis = static_cast<int>(below(x.dims().rank()));
  std::vector<Value> parts = {x};
  for (std::int64_t more = below(3); more >= 0; --more) {
    Dims other = x.dims();
    other[axis] = 1 + below(4);
    parts.push_back(chance(0.2) ? x : like(other, x.dtype()));
  }
  std::shuffle(parts.begin(), parts.end(), random_);
  keep(graph_.concat(parts, chance(0.5) ? axis : axis - x.dims().rank(), spec()));
}

void GraphMaker::add_composite_softmax() {
  const Value x = floating_value(2, 4);
  const Dims last = {x.dims().rank() - 1};
  const Value largest = graph_.reduce(x, ReductionMode::max, last);
  const Value weights = exp(x - largest);
  keep(weights / graph_.reduce(weights, ReductionMode::add, last));
}

void GraphMaker::add_composite_norm() {
  const Value x = floating_value(2, 4);
  const int rank = x.dims().rank();
  const Dims last = {rank - 1};
  Dims parameters = Dims::filled(rank, 1);
  parameters[rank - 1] = x.dims()[rank - 1];
  const Value epsilon = graph_.constant(0x1p-7, f32, rank);
  Value centred = x;
  if (chance(0.6)) centred = x - graph_.reduce(x, ReductionMode::avg, last);
  const Value variance = graph_.reduce(centred * centred, ReductionMode::avg, last);
  const Value y = centred * rsqrt(variance + epsilon) * like(parameters, x.dtype());
  keep(chance(0.5) ? y + like(parameters, x.dtype()) : y);
}

void GraphMaker::add_composite_attention() {
  const std::int64_t batch = 1 + below(2), heads = 1 + below(3), rows = 1 + below(9);
  const std::int64_t columns = 1 + below(9), width = 1 + below(8);
  const DType dtype = floating();
  const Value q = like({batch, heads, rows, width}, dtype);
  const Value k = like({batch, heads, columns, width}, dtype);
  const Value v = like({batch, heads, columns, width}, dtype);
  Value scores = graph_.matmul(q, graph_.transpose(k, {0, 1, 3, 2}), {.dtype = f32});
  if (chance(0.7)) scores = scores * 0.5;
  if (chance(0.4)) scores = scores + broadcastable(scores.dims(), f32);
  if (chance(0.4)) {
    const Value row = graph_.pointwise(PointwiseMode::gen_index, std::array{scores}, {.axis = 2});
    const Value column =
        graph_.pointwise(PointwiseMode::gen_index, std::array{scores}, {.axis = 3});
    const Value visible = pointwise(PointwiseMode::cmp_ge, row, column);
    scores = select(visible, scores, graph_.constant(-1e9, f32, 4));
  }
  const Value weights = graph_.softmax(scores, {}, {.dtype = dtype});
  keep(graph_.matmul(weights, v));
}

// A matmul between views, followed by pointwise operations on the viewed shape.
void GraphMaker::add_composite_linear() {
  const std::int64_t batch = 1 + below(3), rows = 1 + below(6), heads = 1 + below(3);
  const std::int64_t depth = 1 + below(12), columns = heads * (1 + below(6));
  const DType dtype = floating();
  const Value x = graph_.reshape(like({batch, rows, depth}, dtype), {batch * rows, depth});
  Value y = graph_.matmul(x, like({depth, columns}, dtype), {.dtype = f32});
  if (chance(0.3)) y = relu(y);
  y = graph_.reshape(y, {batch, rows, heads, columns / heads});
  if (chance(0.4)) y = graph_.transpose(y, {0, 2, 1, 3});
  for (std::int64_t more = 1 + below(3); more > 0; --more)
    y = y + broadcastable(y.dims(), chance(0.5) ? f32 : dtype, true);
  if (chance(0.3)) keep(y);
  keep(y * graph_.constant(0.5, f32, 4));
}

}  // namespace ashlar::random_graphs
