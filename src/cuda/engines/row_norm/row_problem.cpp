#include "cuda/engines/row_norm/row_problem.hpp"

#include <algorithm>
#include <limits>

#include "graph/norm_shapes.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

PointwiseProgram input(const Region& region, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  return index < region.prologues.size() ? region.prologues[index] : PointwiseProgram{};
}
PointwiseProgram output(const Region& region, int slot) {
  const auto& outputs = region.anchor->outputs;
  const auto index = static_cast<std::size_t>(slot);
  return index < outputs.size() && outputs[index].present() ? plain_store(outputs[index])
                                                            : PointwiseProgram{};
}

template <class Program, class Visit>
void for_each_view(Program& program, Visit&& visit) {
  for (auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load) visit(step.view);
  for (auto& store : program.stores) visit(store.view);
}

// Moves the stores of a program's result into a program of their own.
PointwiseProgram take_stores(PointwiseProgram& program) {
  PointwiseProgram stores;
  if (program.stores.empty()) return stores;
  stores.space = program.space;
  stores.steps.push_back({.kind = PointwiseProgram::Step::Kind::accumulator});
  for (const PointwiseProgram::Store& store : program.stores)
    if (store.value == program.result) stores.stores.push_back({store.view, 0});
  std::erase_if(program.stores, [&](const auto& store) { return store.value == program.result; });
  return stores;
}

// Adds an axis of extent 1 for rows of one element.
void append_axis(PointwiseProgram& program) {
  for_each_view(program, [](View& view) {
    view.dims.push_back(1);
    view.strides.push_back(1);
  });
  program.space.push_back(1);
}

Dims with_last(const Dims& dims, int axis) {
  Dims result;
  for (int a = 0; a < dims.rank(); ++a)
    if (a != axis) result.push_back(dims[a]);
  result.push_back(dims[axis]);
  return result;
}

}  // namespace

RowProblem::RowProblem(const Region& region) {
  if (region.anchor_as<NormForward>() || region.anchor_as<NormBackward>()) {
    take_norm(region);
  } else if (region.anchor_as<SoftmaxForward>() || region.anchor_as<SoftmaxBackward>()) {
    take_softmax(region);
  } else {
    refusal = "the anchor is not a norm or softmax";
    is_other_operation = true;
  }
}

void RowProblem::take_norm(const Region& region) {
  const auto* forward = region.anchor_as<NormForward>();
  const auto* backward = region.anchor_as<NormBackward>();
  const NormMode mode = forward ? forward->mode : backward->mode;
  if (mode != NormMode::layer && mode != NormMode::rms && mode != NormMode::ada_layer) {
    refusal = "the norm is per channel";
    return;
  }
  precision = region.precision();
  is_centred = mode != NormMode::rms;
  epsilon = forward ? forward->epsilon : backward->epsilon;
  result = region.epilogue;
  if (forward) {
    using In = NormForward;
    kind = Kind::norm_forward;
    if (!input(region, In::mean).empty() || !output(region, In::next_running_mean).empty() ||
        !output(region, In::next_running_var).empty()) {
      refusal = "statistics are operands or running averages, expected batch statistics";
      return;
    }
    first = input(region, In::x);
    stored = take_stores(first);
    if (!first.stores.empty()) {
      refusal = "the prologue of x stores an intermediate other than x";
      return;
    }
    scale = input(region, In::scale);
    bias = input(region, In::bias);
    epsilon_program = input(region, In::epsilon_tensor);
    output1 = output(region, In::out_mean);
    output2 = output(region, In::out_inv_variance);
  } else {
    using In = NormBackward;
    kind = Kind::norm_backward;
    first = input(region, In::x);
    second = input(region, In::dy);
    scale = input(region, In::scale);
    mean = input(region, In::mean);
    inv_variance = input(region, In::inv_variance);
    epsilon_program = input(region, In::epsilon_tensor);
    output1 = output(region, In::dscale);
    output2 = output(region, In::dbias);
  }
  const NormShapes shapes = norm_shapes(mode, first.space, forward ? forward->axes : backward->axes,
                                        forward ? forward->groups : backward->groups);
  arrange(shapes.statistics, shapes.parameters);
}

void RowProblem::take_softmax(const Region& region) {
  const auto* forward = region.anchor_as<SoftmaxForward>();
  const auto* backward = region.anchor_as<SoftmaxBackward>();
  kind = forward ? Kind::softmax_forward : Kind::softmax_backward;
  is_centred = false;
  precision = region.precision();
  is_log = forward ? forward->log : backward->log;
  first = input(region, 0);
  if (backward) second = input(region, SoftmaxBackward::dy);
  if (forward) {
    output1 = output(region, SoftmaxForward::stats);
    materialises_prologue =
        std::count_if(first.steps.begin(), first.steps.end(), [](const auto& step) {
          return step.kind == PointwiseProgram::Step::Kind::load &&
                 bit_width(step.view.dtype) >= 16;
        }) > 1;
  }
  result = region.epilogue;
  Dims lines = first.space;
  const std::int64_t axis = forward ? forward->axis : backward->axis;
  lines[static_cast<int>(axis < 0 ? axis + lines.rank() : axis)] = 1;
  arrange(lines, Dims::filled(lines.rank(), 1));
}

void RowProblem::arrange(Dims statistics, Dims parameters) {
  space = first.space;
  if (result.empty()) {
    refusal = "y or dx is not an output";
    return;
  }
  for (const PointwiseProgram* program : programs())
    for_each_view(*program, [&](const View& view) {
      if (view.ragged_offset != kNoTensor || is_complex(view.dtype))
        refusal = "a ragged or complex tensor";
    });
  if (element_count(space) == 0) refusal = "the tensor is empty";
  if (!refusal.empty()) return;

  merge_axes(slots(), {&space, &statistics, &parameters});
  int along = -1, differing = 0;
  for (int axis = 0; axis < space.rank(); ++axis)
    if (statistics[axis] != space[axis]) {
      along = axis;
      ++differing;
    }
  if (differing > 1) {
    refusal = "the normalised axes do not merge into one axis";
    return;
  }
  for (PointwiseProgram* program : slots()) {
    if (program->empty()) continue;
    if (along >= 0)
      move_axis_last(*program, along);
    else
      append_axis(*program);
  }
  if (along >= 0) {
    space = with_last(space, along);
    parameters = with_last(parameters, along);
  } else {
    space.push_back(1);
    parameters.push_back(1);
  }
  const int last = space.rank() - 1;
  length = space[last];
  rows = element_count(space) / length;
  if (length > std::numeric_limits<std::int32_t>::max() / 2)
    refusal = "a row has 2^30 elements or more";
  // Rows with the same parameters must be contiguous.
  bool is_inner = false;
  for (int axis = 0; axis < last; ++axis) {
    if (space[axis] == 1) continue;
    if (parameters[axis] == 1) {
      is_inner = true;
    } else if (is_inner) {
      refusal = "rows with the same parameters are not contiguous";
    } else {
      sets *= space[axis];
    }
  }
}

std::vector<const PointwiseProgram*> RowProblem::programs() const {
  std::vector<const PointwiseProgram*> present;
  for (const PointwiseProgram* program :
       {&first, &second, &scale, &bias, &mean, &inv_variance, &stored, &result, &output1, &output2})
    if (!program->empty()) present.push_back(program);
  return present;
}

}  // namespace ashlar::cuda
