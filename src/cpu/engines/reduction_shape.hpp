// Tensors and iteration space of a reduction, shared by the kernels with and without index.
#pragma once

#include "cpu/box_space.hpp"
#include "plan/engine.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

struct ReductionShape {
  PointwiseProgram x, epilogue, index;
  Dims space, boxes;  // axes merged; boxes: extents of y
  int axis;

  explicit ReductionShape(const Region& region)
      : x(region.prologues[Reduction::x]),
        epilogue(region.epilogue),
        index(output_program(region.anchor->outputs, Reduction::index)),
        space(x.space),
        boxes(region.anchor->outputs[Reduction::y].dims) {
    merge_axes({&x, &epilogue, &index}, {&space, &boxes});
    axis = choose_row_axis(space, {&x});
  }
};

// `split` splits the elements of one result into chunks for several threads; see BoxSpace::splits.
std::unique_ptr<Kernel> build_reduction_with_index(const Region& region, bool split);

}  // namespace ashlar::cpu
