// Random graphs: scan, top_k, pad.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_lines() {
  switch (below(6)) {
    case 0: {
      constexpr std::array kModes = {ScanMode::add, ScanMode::mul, ScanMode::min, ScanMode::max};
      const Value x = arithmetic_value(1, 5);
      const Scan op{.mode = one_of(kModes),
                    .axis = below(x.dims().rank()),
                    .exclusive = chance(0.3),
                    .reverse = chance(0.3)};
      return keep(graph_.apply(op, {{Scan::x, x}}, {Scan::y}, spec()));
    }
    case 1: {
      const Value x = floating_value(1, 5);
      const Scan op{.mode = ScanMode::logsumexp,
                    .axis = below(x.dims().rank()),
                    .exclusive = chance(0.3),
                    .reverse = chance(0.3)};
      return keep(graph_.apply(op, {{Scan::x, x}}, {Scan::y}, spec()));
    }
    case 2:
    case 3: {
      const Value x = arithmetic_value(1, 5);
      const std::int64_t axis = below(x.dims().rank());
      const TopK op{.axis = axis,
                    .k = below(1 + std::min<std::int64_t>(x.dims()[static_cast<int>(axis)], 9)),
                    .largest = chance(0.5)};
      const auto r = graph_.apply(op, {{TopK::x, x}},
                                  {TopK::values, {TopK::index, chance(0.5) ? i32 : i64}}, spec());
      for (const Value& value : r.all()) keep(value);
      return;
    }
    default: {
      const bool backward = chance(0.5);
      const Value x = arithmetic_value(1, 4);
      constexpr std::array kModes = {PadMode::constant, PadMode::reflect, PadMode::edge,
                                     PadMode::circular};
      const PadMode mode = one_of(kModes);
      Dims before, after;
      for (int axis = 0; axis < x.dims().rank(); ++axis) {
        const std::int64_t least = mode == PadMode::constant ? -1 : 0;
        before.push_back(least + below(4));
        after.push_back(chance(0.5) ? 0 : least + below(4));
      }
      if (backward)
        return keep(graph_.apply(PadBackward{.mode = mode, .before = before, .after = after},
                                 {{PadBackward::dy, x}}, {PadBackward::dx}, spec()));
      const Pad op{.mode = mode,
                   .before = before,
                   .after = after,
                   .value = 0.5 * static_cast<double>(below(5) - 2)};
      return keep(graph_.apply(op, {{Pad::x, x}}, {Pad::y}, spec()));
    }
  }
}

}  // namespace ashlar::random_graphs
