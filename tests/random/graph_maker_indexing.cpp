// Gather and scatter in random graphs.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_indexing() {
  const IndexMode mode = chance(0.6) ? IndexMode::slices : IndexMode::elements;
  const DType integer = chance(0.5) ? i32 : i64;
  const Value x = arithmetic_value(1, 4);
  const Dims whole = x.dims();
  const int axis = static_cast<int>(below(whole.rank()));
  const std::int64_t given = chance(0.5) ? axis : axis - whole.rank();
  // The index is mostly an input; a computed one selects whatever it selects.
  const auto index_of = [&](const Dims& extents) {
    return chance(0.9) ? graph_.input(name("n"), extents, integer) : like(extents, integer);
  };
  Dims index = mode == IndexMode::slices ? dims(chance(0.8) ? 1 : 2) : whole;
  if (mode == IndexMode::elements) index[axis] = extent();
  Dims selection;
  for (int a = 0; a < whole.rank(); ++a) {
    if (a != axis || mode == IndexMode::elements)
      selection.push_back(mode == IndexMode::elements ? index[a] : whole[a]);
    else
      for (const std::int64_t i : index) selection.push_back(i);
  }
  if (element_count(selection) > 20000) return;
  if (chance(0.5))
    return keep(graph_.apply(
        Gather{.axis = given,
               .mode = mode,
               .out_of_range = chance(0.5) ? OutOfRange::zero : OutOfRange::clamp},
        {{Gather::x, x}, {Gather::index, index_of(index)}}, {Gather::y}, spec())[Gather::y]);
  OutputSpec wanted = spec();
  wanted.dims = whole;
  keep(graph_.apply(
      Scatter{.axis = given, .mode = mode, .combine = static_cast<ScatterMode>(below(5))},
      {{Scatter::source, like(selection, x.dtype())},
       {Scatter::index, index_of(index)},
       {Scatter::base, chance(0.6) ? x : Value()}},
      {Scatter::y}, wanted)[Scatter::y]);
}

}  // namespace ashlar::random_graphs
