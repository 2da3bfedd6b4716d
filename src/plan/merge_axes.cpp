// Merging and reordering of the axes of pointwise programs.
#include "plan/merge_axes.hpp"

#include <limits>

namespace ashlar {

namespace {

Dims without(const Dims& dims, int axis) {
  Dims result;
  for (int a = 0; a < dims.rank(); ++a)
    if (a != axis) result.push_back(dims[a]);
  return result;
}

template <class Program, class Visit>
void for_each_view(Program& program, Visit&& visit) {
  for (auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load ||
        step.kind == PointwiseProgram::Step::Kind::random)
      visit(step.view);
  for (auto& store : program.stores) visit(store.view);
}

bool reads_coordinate(const PointwiseProgram& program, int axis) {
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::compute &&
        step.op.mode == PointwiseMode::gen_index && step.op.axis == axis)
      return true;
  return false;
}

bool reads_coordinates(const PointwiseProgram& program) {
  for (int axis = 0; axis < program.space.rank(); ++axis)
    if (reads_coordinate(program, axis)) return true;
  return false;
}

bool shape_allows(const Dims& full, const Dims& shape, int axis) {
  if (full[axis] == 1 || full[axis + 1] == 1) return true;
  const bool both_full = shape[axis] == full[axis] && shape[axis + 1] == full[axis + 1];
  return both_full || (shape[axis] == 1 && shape[axis + 1] == 1);
}

bool program_allows(const Dims& full, const PointwiseProgram& program, int axis) {
  if (!shape_allows(full, program.space, axis)) return false;
  if (reads_coordinate(program, axis) || reads_coordinate(program, axis + 1)) return false;
  bool allowed = !program.has_blocks();
  for_each_view(program, [&](const View& view) {
    if (view.ragged_offset != kNoTensor && axis == 0) allowed = false;
    if (program.space[axis] == 1 || program.space[axis + 1] == 1) return;
    if (view.strides[axis] != view.strides[axis + 1] * program.space[axis + 1]) allowed = false;
  });
  return allowed;
}

// Merges `axis` with the next one.
void merge(PointwiseProgram& program, int axis) {
  const bool keep_first_stride = program.space[axis + 1] == 1;
  const std::int64_t extent = program.space[axis] * program.space[axis + 1];
  for_each_view(program, [&](View& view) {
    const std::int64_t stride = view.strides[keep_first_stride ? axis : axis + 1];
    view.dims = without(view.dims, axis + 1);
    view.strides = without(view.strides, axis + 1);
    view.dims[axis] = extent;
    view.strides[axis] = stride;
  });
  program.space = without(program.space, axis + 1);
  program.space[axis] = extent;
  for (auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::compute &&
        step.op.mode == PointwiseMode::gen_index && step.op.axis > axis)
      --step.op.axis;
}

}  // namespace

void merge_axes(const std::vector<PointwiseProgram*>& programs, const std::vector<Dims*>& shapes) {
  for (int axis = shapes[0]->rank() - 2; axis >= 0; --axis) {
    const Dims full = *shapes[0];
    bool allowed = true;
    for (const Dims* shape : shapes) allowed = allowed && shape_allows(full, *shape, axis);
    for (const PointwiseProgram* program : programs)
      allowed = allowed && (program->empty() || program_allows(full, *program, axis));
    if (!allowed) continue;
    for (PointwiseProgram* program : programs)
      if (!program->empty()) merge(*program, axis);
    for (Dims* shape : shapes) {
      const std::int64_t extent = (*shape)[axis] * (*shape)[axis + 1];
      *shape = without(*shape, axis + 1);
      (*shape)[axis] = extent;
    }
  }
}

void move_axis_last(PointwiseProgram& program, int axis) {
  const int last = program.space.rank() - 1;
  const auto moved = [&](const Dims& dims) {
    Dims result = without(dims, axis);
    result.push_back(dims[axis]);
    return result;
  };
  for_each_view(program, [&](View& view) {
    view.dims = moved(view.dims);
    view.strides = moved(view.strides);
  });
  program.space = moved(program.space);
  for (auto& step : program.steps) {
    if (!step.blocks.empty()) step.blocks = moved(step.blocks);
    if (step.kind != PointwiseProgram::Step::Kind::compute ||
        step.op.mode != PointwiseMode::gen_index)
      continue;
    if (step.op.axis < 0) step.op.axis += last + 1;
    step.op.axis = step.op.axis == axis ? last : step.op.axis - (step.op.axis > axis ? 1 : 0);
  }
}

bool flatten(const std::vector<PointwiseProgram*>& programs, int last) {
  std::vector<PointwiseProgram> moved;
  std::vector<PointwiseProgram*> pointers;
  Dims space = programs[0]->space;
  for (PointwiseProgram* program : programs) {
    if (program->space != space || reads_coordinates(*program)) return false;
    moved.push_back(*program);
  }
  const auto to_end = [&](const Dims& dims) {
    Dims result = without(dims, last);
    result.push_back(dims[last]);
    return result;
  };
  for (PointwiseProgram& program : moved) {
    for_each_view(program, [&](View& view) {
      view.dims = to_end(view.dims);
      view.strides = to_end(view.strides);
    });
    program.space = to_end(program.space);
    pointers.push_back(&program);
  }
  space = to_end(space);
  merge_axes(pointers, {&space});
  bool flat = space.rank() == 1;
  for (const PointwiseProgram& program : moved)
    for_each_view(program, [&](const View& view) { flat = flat && view.strides[0] == 1; });
  if (!flat) return false;
  for (std::size_t i = 0; i < programs.size(); ++i) *programs[i] = moved[i];
  return true;
}

int choose_row_axis(const Dims& space, const std::vector<const PointwiseProgram*>& programs) {
  // Costs in units of one contiguously moved element: starting a row, and a strided element.
  constexpr double kRowStart = 64.0, kStridedElement = 4.0;
  int best = space.rank() - 1;
  double best_cost = std::numeric_limits<double>::infinity();
  for (int axis = space.rank() - 1; axis >= 0; --axis) {
    if (space[axis] <= 1) continue;
    double views = 0, contiguous = 0;
    for (const PointwiseProgram* program : programs)
      for_each_view(*program, [&](const View& view) {
        views += 1;
        contiguous += view.strides[axis] <= 1 ? 1 : 0;
      });
    const double strided_share = views > 0 ? 1.0 - contiguous / views : 0.0;
    const double cost =
        kRowStart / static_cast<double>(space[axis]) + strided_share * kStridedElement;
    if (cost < best_cost) {
      best = axis;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace ashlar
