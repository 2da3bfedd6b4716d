// Matching and loading of per-channel post-ops.
#include "cpu/conv/channel_post_ops.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/kernels/convert.hpp"

namespace ashlar::cpu {

namespace {

using Step = PointwiseProgram::Step;

template <class T>
constexpr DType kRegister = std::is_same_v<T, float> ? f32 : f64;

// Whether the value depends on the channel alone.
bool varies_by_channel(const View& view, int axis) {
  for (int a = 0; a < view.strides.rank(); ++a)
    if (a != axis && view.strides[a] != 0 && view.dims[a] != 1) return false;
  return true;
}

}  // namespace

template <class T>
std::optional<ChannelPostOps<T>> ChannelPostOps<T>::of(const PointwiseProgram& epilogue, int axis,
                                                       double alpha) {
  if (!epilogue.has_accumulator() || epilogue.stores.size() != 1) return std::nullopt;
  const PointwiseProgram::Store& store = epilogue.stores[0];
  if (store.view.dtype != kRegister<T> || store.view.ragged_offset != kNoTensor)
    return std::nullopt;
  ChannelPostOps post_ops;
  post_ops.axis_ = axis;
  post_ops.result_ = store.view;
  if (alpha != 1.0)
    post_ops.operands_.push_back({.view = {}, .constant = alpha, .multiplies = true});
  int value = 0;  // the step that holds the current value of the accumulator
  for (int i = 0; i < static_cast<int>(epilogue.steps.size()); ++i) {
    const Step& step = epilogue.steps[static_cast<std::size_t>(i)];
    if (step.round_to && *step.round_to != kRegister<T>) return std::nullopt;
    if (step.kind != Step::Kind::compute) continue;
    if (!post_ops.take(epilogue, step, value)) return std::nullopt;
    value = i;
  }
  if (store.value != value) return std::nullopt;
  return post_ops;
}

template <class T>
bool ChannelPostOps<T>::take(const PointwiseProgram& program, const Step& step, int value) {
  const auto reads_sum = [&](int operand) {
    return step.args[static_cast<std::size_t>(operand)] == value;
  };
  if (step.op.alpha1 != 1.0 || step.op.alpha2 != 1.0 || !is_floating(step.compute)) return false;
  switch (step.op.mode) {
    case PointwiseMode::identity: return reads_sum(Pointwise::x);
    case PointwiseMode::add:
    case PointwiseMode::mul: {
      if (reads_sum(Pointwise::x) == reads_sum(Pointwise::b)) return false;
      const int other = step.args[static_cast<std::size_t>(reads_sum(Pointwise::x) ? Pointwise::b
                                                                                   : Pointwise::x)];
      return take_operand(program, other, step.op.mode == PointwiseMode::mul);
    }
    case PointwiseMode::relu_fwd: {
      if (!reads_sum(Pointwise::x) || clamps_ || step.op.relu_lower_slope != 0.0) return false;
      clamps_ = true;
      low_ = static_cast<T>(step.op.relu_lower_clip);
      high_ = static_cast<T>(step.op.relu_upper_clip);
      return low_ <= high_;
    }
    default: return false;
  }
}

template <class T>
bool ChannelPostOps<T>::take_operand(const PointwiseProgram& program, int operand,
                                     bool multiplies) {
  const Step& source = program.steps[static_cast<std::size_t>(operand)];
  if (clamps_) return false;
  // A multiplication after an addition would round the addends twice.
  if (multiplies && (residual() != nullptr || (!operands_.empty() && !operands_.back().multiplies)))
    return false;
  if (source.kind == Step::Kind::constant) {
    operands_.push_back({.view = {}, .constant = source.constant, .multiplies = multiplies});
    return true;
  }
  if (source.kind != Step::Kind::load || source.view.ragged_offset != kNoTensor) return false;
  if (varies_by_channel(source.view, axis_)) {
    operands_.push_back({.view = source.view, .multiplies = multiplies});
    return true;
  }
  if (multiplies || residual() != nullptr || source.view.dtype != kRegister<T>) return false;
  residual_ = source.view;
  return true;
}

template <class T>
bool ChannelPostOps<T>::does_nothing() const {
  return operands_.empty() && residual() == nullptr && !clamps_;
}

template <class T>
void ChannelPostOps<T>::load(const KernelContext& context, std::int64_t channels, T* factor,
                             T* offset) const {
  std::fill_n(factor, channels, T{1});
  std::fill_n(offset, channels, T{0});
  constexpr std::int64_t kChunk = 256;
  alignas(64) T chunk[kChunk];
  for (const Operand& operand : operands_)
    for (std::int64_t first = 0; first < channels; first += kChunk) {
      const std::int64_t count = std::min(kChunk, channels - first);
      if (operand.view.present()) {
        const std::int64_t stride = operand.view.dims[axis_] == 1 ? 0 : operand.view.strides[axis_];
        load_row<T>(operand.view.dtype)(context.pointer(operand.view.tensor),
                                        operand.view.offset + first * stride, stride, count, chunk);
      } else {
        std::fill_n(chunk, count, static_cast<T>(operand.constant));
      }
      for (std::int64_t i = 0; i < count; ++i) {
        if (operand.multiplies)
          factor[first + i] *= chunk[i];
        else
          offset[first + i] += chunk[i];
      }
    }
}

template class ChannelPostOps<float>;
template class ChannelPostOps<double>;

}  // namespace ashlar::cpu
