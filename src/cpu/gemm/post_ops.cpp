// Matches a region's epilogue to the post-ops of the GEMM micro-kernels.
#include "cpu/gemm/post_ops.hpp"

#include "graph/pointwise_traits.hpp"

namespace ashlar::cpu {

namespace {

using Step = PointwiseProgram::Step;

// Columns are contiguous, so that vectors can be loaded.
bool runs_along(const View& view, int column_axis) {
  return view.strides[column_axis] == 1 && view.ragged_offset == kNoTensor;
}

bool same_for_all_rows(const View& view, int column_axis) {
  for (int axis = 0; axis < view.strides.rank(); ++axis)
    if (axis != column_axis && view.strides[axis] != 0) return false;
  return true;
}

// Follows the value that starts as the accumulator, step by step.
class Matcher {
 public:
  Matcher(const PointwiseProgram& epilogue, int column_axis, DType dtype, Activations activations)
      : epilogue_(epilogue), column_axis_(column_axis), dtype_(dtype), activations_(activations) {}

  std::optional<PostOpsPattern> match() {
    if (!epilogue_.has_accumulator() || epilogue_.stores.size() != 1) return std::nullopt;
    for (std::size_t i = 0; i < epilogue_.steps.size(); ++i)
      if (!take(static_cast<int>(i), epilogue_.steps[i])) return std::nullopt;
    const PointwiseProgram::Store& store = epilogue_.stores[0];
    if (store.value != value_ || !runs_along(store.view, column_axis_)) return std::nullopt;
    pattern_.result = store.view;
    return pattern_;
  }

 private:
  bool take(int number, const Step& step) {
    if (step.round_to && *step.round_to != dtype_) return false;
    switch (step.kind) {
      case Step::Kind::accumulator: return number == 0;
      case Step::Kind::load: return step.view.dtype == dtype_;  // checked at its use
      case Step::Kind::constant:
      case Step::Kind::random: return false;
      case Step::Kind::compute: break;
    }
    if (step.compute != dtype_ || step.op.alpha1 != 1.0 || step.op.alpha2 != 1.0 ||
        pattern_.activation)
      return false;
    const bool taken = (step.op.mode == PointwiseMode::add && add(step)) ||
                       (step.op.mode == PointwiseMode::relu_fwd && clamp(step)) || activate(step);
    value_ = number;
    return taken;
  }

  bool add(const Step& step) {
    const int x = step.args[Pointwise::x], b = step.args[Pointwise::b];
    if ((x == value_) == (b == value_) || clamped_) return false;
    const Step& other = epilogue_.steps[static_cast<std::size_t>(x == value_ ? b : x)];
    if (other.kind != Step::Kind::load || !runs_along(other.view, column_axis_)) return false;
    View& slot = same_for_all_rows(other.view, column_axis_) && !pattern_.bias.present()
                     ? pattern_.bias
                     : pattern_.addend;
    if (slot.present()) return false;
    slot = other.view;
    return true;
  }

  bool clamp(const Step& step) {
    const Pointwise& op = step.op;
    if (step.args[Pointwise::x] != value_ || clamped_ || op.relu_lower_slope != 0.0 ||
        op.relu_lower_clip > op.relu_upper_clip)
      return false;
    pattern_.low = op.relu_lower_clip;
    pattern_.high = op.relu_upper_clip;
    clamped_ = true;
    return true;
  }

  bool activate(const Step& step) {
    if (activations_ == Activations::refused || operand_count(step.op.mode) != 1 ||
        step.op.mode == PointwiseMode::gen_index || step.args[Pointwise::x] != value_)
      return false;
    pattern_.activation = step.op;
    return true;
  }

  const PointwiseProgram& epilogue_;
  int column_axis_;
  DType dtype_;
  Activations activations_;
  PostOpsPattern pattern_;
  int value_ = 0;  // the step that holds the current value of the accumulator
  bool clamped_ = false;
};

}  // namespace

std::optional<PostOpsPattern> match_post_ops(const PointwiseProgram& epilogue, int column_axis,
                                             DType dtype, Activations activations) {
  return Matcher(epilogue, column_axis, dtype, activations).match();
}

}  // namespace ashlar::cpu
