// The operands of a norm's gradient, with axes merged where all of them allow it.
#pragma once

#include "cpu/operand.hpp"
#include "graph/norm_shapes.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

struct NormBackwardShape {
  PointwiseProgram x, dy, scale, mean, inv_variance;
  PointwiseProgram dx, dscale, dbias;
  Dims space, statistics, parameters;
  int axis;  // row axis

  explicit NormBackwardShape(const Region& region)
      : x(region.prologues[NormBackward::x]),
        dy(region.prologues[NormBackward::dy]),
        scale(input_program(region, NormBackward::scale)),
        mean(input_program(region, NormBackward::mean)),
        inv_variance(input_program(region, NormBackward::inv_variance)),
        dx(region.epilogue),
        dscale(output_program(region.anchor->outputs, NormBackward::dscale)),
        dbias(output_program(region.anchor->outputs, NormBackward::dbias)),
        space(x.space) {
    const auto& op = *region.anchor_as<NormBackward>();
    const NormShapes shapes = norm_shapes(op.mode, space, op.axes, op.groups);
    statistics = shapes.statistics;
    parameters = shapes.parameters;
    merge_axes({&x, &dy, &scale, &mean, &inv_variance, &dx, &dscale, &dbias},
               {&space, &statistics, &parameters});
    axis = choose_row_axis(space, {&x, &dy, &dx});
  }
};

}  // namespace ashlar::cpu
