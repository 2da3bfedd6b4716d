// Cross-entropy and rotary position embedding in random graphs.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_language_model() {
  // Indices are separate inputs: computed values could be out of range.
  const auto integers = [&](const Dims& extents) {
    return graph_.input(name("n"), extents, chance(0.5) ? i32 : i64);
  };
  if (chance(0.5)) {
    const Dims x = {1 + below(3), 1 + below(3), below(40), 2 + 2 * below(12)};
    const std::int64_t half = x[3] / 2;
    Rope op;
    op.pairs = static_cast<RopePairs>(below(2));
    op.width = chance(0.3) ? 2 * (1 + below(half)) : x[3];
    op.inverse = chance(0.3);
    op.factor = chance(0.3) ? 4.0 : 1.0;
    op.original_length = 64;
    Value positions, cos, sin;
    const DType dtype = floating();
    if (chance(0.5)) {
      positions = integers({chance(0.5) ? x[0] : 1, x[2]});
    } else if (chance(0.5)) {
      const Dims table = {chance(0.5) ? x[0] : 1, chance(0.3) ? x[1] : 1, x[2], op.width / 2};
      cos = like(table, dtype);
      sin = like(table, dtype);
    }
    return keep(graph_.apply(op,
                             {{Rope::x, like(x, dtype)},
                              {Rope::positions, positions},
                              {Rope::cos, cos},
                              {Rope::sin, sin}},
                             {Rope::y}, spec()));
  }
  const Value x = floating_value(1, 4);
  Dims rows = x.dims();
  const int axis = rows.rank() - 1;
  if (rows[axis] == 0) return;
  rows[axis] = 1;
  const Value target = integers(rows);
  const double smoothing = chance(0.3) ? 0.1 : 0.0;
  const std::int64_t ignored = chance(0.3) ? 1 : -100;
  const bool mean = chance(0.3);
  if (chance(0.5)) {
    using Op = CrossEntropyForward;
    Op op;
    op.label_smoothing = smoothing;
    op.ignore_index = ignored;
    op.mean = mean;
    const auto results =
        graph_.apply(op, {{Op::x, x}, {Op::target, target}}, {Op::loss, Op::stats});
    keep(results[Op::loss]);
    return keep(results[Op::stats]);
  }
  using Op = CrossEntropyBackward;
  Op op;
  op.label_smoothing = smoothing;
  op.ignore_index = ignored;
  op.mean = mean;
  const DType wide = x.dtype() == f64 ? f64 : f32;
  keep(graph_.apply(op,
                    {{Op::x, x},
                     {Op::target, target},
                     {Op::stats, like(rows, wide)},
                     {Op::dloss, like(mean ? Dims::filled(rows.rank(), 1) : rows, wide)}},
                    {Op::dx}, spec()));
}

}  // namespace ashlar::random_graphs
