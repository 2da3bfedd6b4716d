// CTC loss, spatial transformer, patches and tensor transforms in random graphs.
#include <algorithm>

#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_spatial() {
  switch (below(6)) {
    case 0: {  // ctc_loss
      const std::int64_t times = 1 + below(8), batch = 1 + below(4), classes = 1 + below(6);
      const std::int64_t longest = below(4);
      const Dims x_dims = {times, batch, classes};
      const DType dtype = floating();
      CtcLoss op{.blank = below(classes), .zero_infinity = chance(0.5)};
      if (chance(0.3)) op.input = CtcInput::probabilities;
      if (chance(0.3)) op.padding = CtcPadding::skip;
      const bool skip = op.padding == CtcPadding::skip;
      const Value x = op.input == CtcInput::logits ? like(x_dims, dtype)
                                                   : graph_.input(name("p"), x_dims, dtype);
      const Dims labels = chance(0.5) ? Dims{batch, longest} : Dims{batch * longest};
      const std::vector<Operand<CtcLoss>> operands = {
          {CtcLoss::x, x},
          {CtcLoss::labels, graph_.input(name("labels"), labels, chance(0.5) ? i32 : i64)},
          {CtcLoss::label_lengths, graph_.input(name("ll"), {batch}, i32)},
          {CtcLoss::input_lengths, graph_.input(name("il"), {batch}, i64)},
          {CtcLoss::previous, skip ? like(x_dims, dtype) : Value()}};
      std::vector<Wanted<CtcLoss>> wanted = {CtcLoss::loss};
      if (skip || chance(0.7)) wanted.push_back(CtcLoss::gradient);
      const auto results = graph_.apply(op, operands, wanted);
      // Infinite losses are usable as outputs, not as operands.
      if (op.zero_infinity) keep(results[CtcLoss::loss]);
      keep(results[CtcLoss::gradient]);
      return;
    }
    case 1: {  // grid generators
      const std::int64_t axes = 2 + below(2), batch = 1 + below(3);
      Dims size, grid = {batch};
      for (int axis = 0; axis < axes; ++axis) size.push_back(1 + below(5));
      for (std::int64_t extent : size) grid.push_back(extent);
      grid.push_back(axes);
      const GridAttributes attributes{size, chance(0.5)};
      if (chance(0.5))
        return keep(
            graph_.apply(GridGeneratorForward{attributes},
                         {{GridGeneratorForward::theta, like({batch, axes, axes + 1}, floating())}},
                         {GridGeneratorForward::grid}, spec()));
      return keep(graph_.apply(GridGeneratorBackward{attributes},
                               {{GridGeneratorBackward::dgrid, like(grid, floating())}},
                               {GridGeneratorBackward::dtheta}, spec()));
    }
    case 2:
    case 3: {  // grid samplers
      const int axes = 2 + static_cast<int>(below(2));
      Dims x = {1 + below(3), 1 + below(chance(0.2) ? 20 : 4)}, grid = {x[0]};
      for (int axis = 0; axis < axes; ++axis) x.push_back(1 + below(5));
      for (int axis = 0; axis < axes; ++axis) grid.push_back(1 + below(4));
      grid.push_back(axes);
      const GridSampleAttributes attributes{static_cast<GridSampleMode>(below(2)),
                                            static_cast<GridPadding>(below(3)), chance(0.5)};
      const DType dtype = floating();
      const Value at = chance(0.7) ? graph_.input(name("grid"), grid, chance(0.7) ? f32 : dtype)
                                   : like(grid, dtype);
      const Value image = like(x, dtype);
      if (chance(0.5))
        return keep(graph_.apply(GridSampleForward{attributes},
                                 {{GridSampleForward::x, image}, {GridSampleForward::grid, at}},
                                 {GridSampleForward::y}, spec()));
      Dims y = {x[0], x[1]};
      for (int axis = 0; axis < axes; ++axis) y.push_back(grid[axis + 1]);
      std::vector<Wanted<GridSampleBackward>> wanted = {GridSampleBackward::dx};
      if (chance(0.7)) wanted.push_back(GridSampleBackward::dgrid);
      const std::vector<Operand<GridSampleBackward>> operands = {
          {GridSampleBackward::x, image},
          {GridSampleBackward::grid, at},
          {GridSampleBackward::dy, like(y, dtype)}};
      const auto results = graph_.apply(GridSampleBackward{attributes}, operands, wanted, spec());
      keep(results[GridSampleBackward::dx]);
      keep(results[GridSampleBackward::dgrid]);
      return;
    }
    case 4: {  // im2col
      const Value x = arithmetic_value(3, 5);
      Im2Col op;
      for (int axis = 2; axis < x.dims().rank(); ++axis) {
        op.window.push_back(
            1 + below(std::min<std::int64_t>(3, std::max<std::int64_t>(1, x.dims()[axis]))));
        op.padding.push_back(below(3));
        op.stride.push_back(1 + below(2));
      }
      if (element_count(x.dims()) * element_count(op.window) > 20000) return;
      return keep(graph_.apply(op, {{Im2Col::x, x}}, {Im2Col::y}, spec()));
    }
    default: {  // tensor_transform
      const Value x = arithmetic_value(1, 5);
      const int rank = x.dims().rank();
      TensorTransform op;
      op.unfold = chance(0.4);
      for (int axis = 0; axis < rank; ++axis) {
        op.pad_before.push_back(chance(0.6) ? 0 : below(3));
        op.pad_after.push_back(chance(0.6) ? 0 : below(3));
      }
      std::int64_t blocks = 1;
      for (int axis = 2; axis < rank; ++axis) {
        const std::int64_t fold = chance(0.5) ? 1 : 2;
        op.fold.push_back(fold);
        blocks *= fold;
        if (!op.unfold && (x.dims()[axis] + op.pad_before[axis] + op.pad_after[axis]) % fold != 0)
          ++op.pad_after[axis];
      }
      if (op.unfold && rank >= 3 && x.dims()[1] % blocks != 0) op.fold = Dims::filled(rank - 2, 1);
      if (chance(0.3)) op.alpha = 0.5;
      Graph trial;
      const Value moved = trial.apply(op, {{TensorTransform::x, trial.input("x", x.dims(), f32)}},
                                      {TensorTransform::y});
      const Dims y = moved.dims();
      Value z;
      if (chance(0.3)) {
        op.beta = chance(0.5) ? 1.0 : -2.0;
        z = like(y, x.dtype());
      }
      return keep(graph_.apply(op, {{TensorTransform::x, x}, {TensorTransform::z, z}},
                               {TensorTransform::y}, spec()));
    }
  }
}

}  // namespace ashlar::random_graphs
