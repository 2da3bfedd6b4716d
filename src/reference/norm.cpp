// Normalisations. All modes are the same computation over different groups of elements; a group is
// the set of elements that share one mean and inv_variance.
//   mean = sum(x) / n  (rms: 0)
//   variance = sum((x - mean)^2) / n
//   inv_variance = 1 / sqrt(variance + epsilon)
//   x_hat = (x - mean) * inv_variance
//   y = x_hat * scale + bias
#include <array>
#include <limits>

#include "graph/norm_shapes.hpp"
#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

// The elements of x that share the statistics at `index`.
Box group_box(const Dims& x, const Dims& statistics, const Index& index) {
  Box box = Box::all(x);
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (statistics[axis] == 1) continue;
    const std::int64_t width =
        x[axis] / statistics[axis];  // above 1 for the channels of a group only
    box.begin[axis] = index[axis] * width;
    box.end[axis] = box.begin[axis] + width;
  }
  return box;
}

// The elements of x to which the parameter at `index` applies.
Box parameter_box(const Dims& x, const Dims& parameters, const Index& index) {
  return group_box(x, parameters, index);
}

template <class Scalar>
struct Statistics {
  Scalar mean, variance, inv_variance;
};

template <class Scalar, class View>
Statistics<Scalar> statistics_of(const View& x, const Box& group, bool centred, Scalar epsilon) {
  const Scalar count(real(group.size()));
  Statistics<Scalar> result{Scalar(0.0), Scalar(0.0), Scalar(0.0)};
  if (centred) {
    Accumulator<Scalar> sum;
    for_each_in(group, [&](const Index& index) { sum.add(x.load(index)); });
    result.mean = sum.total() / count;
  }
  Accumulator<Scalar> squares;
  for_each_in(group, [&](const Index& index) {
    const Scalar deviation = centred ? x.load(index) - result.mean : x.load(index);
    squares.add(deviation * deviation);
  });
  result.variance = squares.total() / count;
  result.inv_variance = rsqrt(result.variance + epsilon);
  return result;
}

template <class Operands, class Norm>
typename Operands::Scalar epsilon_of(const Norm& op, const Operands& operands) {
  if (operands.has_input(Norm::epsilon_tensor))
    return operands.input(Norm::epsilon_tensor).load(Index{0});
  return typename Operands::Scalar(op.epsilon);
}

// (1 - momentum) * running + momentum * batch
template <class Operands, class Scalar>
void update_running(const NormForward& op, const Operands& operands, int running, int next,
                    const Index& index, Scalar batch) {
  if (!operands.has_output(next)) return;
  const Scalar momentum = operands.has_input(NormForward::momentum_tensor)
                              ? operands.input(NormForward::momentum_tensor).load(Index{0})
                              : Scalar(op.momentum);
  operands.output(next).store(
      index, (Scalar(1.0) - momentum) * operands.input(running).load(index) + momentum * batch);
}

template <class Operands>
Statistics<typename Operands::Scalar> forward_statistics(const NormForward& op,
                                                         const Operands& operands, const Box& group,
                                                         const Index& index) {
  using Scalar = typename Operands::Scalar;
  if (operands.has_input(NormForward::mean))
    return {operands.input(NormForward::mean).load(index), Scalar(0.0),
            operands.input(NormForward::inv_variance).load(index)};
  if (op.mode == NormMode::batch && op.phase == NormPhase::inference) {
    const Scalar variance = operands.input(NormForward::running_var).load(index);
    return {operands.input(NormForward::running_mean).load(index), variance,
            rsqrt(variance + epsilon_of(op, operands))};
  }
  return statistics_of<Scalar>(operands.input(NormForward::x), group, op.mode != NormMode::rms,
                               epsilon_of(op, operands));
}

}  // namespace

template <class Operands>
void evaluate(const NormForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(NormForward::x);
  const auto y = operands.output(NormForward::y);
  const NormShapes shapes = norm_shapes(op.mode, x.dims(), op.axes, op.groups);

  for_each(shapes.statistics, [&](const Index& index) {
    const Box group = group_box(x.dims(), shapes.statistics, index);
    const Statistics<Scalar> statistics = forward_statistics(op, operands, group, index);
    for_each_in(group, [&](const Index& at) {
      Scalar value = (x.load(at) - statistics.mean) * statistics.inv_variance;
      if (operands.has_input(NormForward::scale))
        value = value * operands.input(NormForward::scale).load(at);
      if (operands.has_input(NormForward::bias))
        value = value + operands.input(NormForward::bias).load(at);
      y.store(at, value);
    });
    if (operands.has_output(NormForward::out_mean))
      operands.output(NormForward::out_mean).store(index, statistics.mean);
    if (operands.has_output(NormForward::out_inv_variance))
      operands.output(NormForward::out_inv_variance).store(index, statistics.inv_variance);
    // The running variance is unbiased: n / (n - 1) times the batch variance; 0 for n = 1.
    const double n = real(group.size());
    const Scalar unbiased =
        n > 1.0 ? statistics.variance * Scalar(n / (n - 1.0)) : statistics.variance;
    update_running(op, operands, NormForward::running_mean, NormForward::next_running_mean, index,
                   statistics.mean);
    update_running(op, operands, NormForward::running_var, NormForward::next_running_var, index,
                   unbiased);
  });
}

namespace {

template <class Operands>
Statistics<typename Operands::Scalar> backward_statistics(const NormBackward& op,
                                                          const Operands& operands,
                                                          const Box& group, const Index& index) {
  using Scalar = typename Operands::Scalar;
  if (!operands.has_input(NormBackward::inv_variance))
    return statistics_of<Scalar>(operands.input(NormBackward::x), group, op.mode != NormMode::rms,
                                 epsilon_of(op, operands));
  Statistics<Scalar> given{Scalar(0.0), Scalar(0.0),
                           operands.input(NormBackward::inv_variance).load(index)};
  if (operands.has_input(NormBackward::mean))
    given.mean = operands.input(NormBackward::mean).load(index);
  return given;
}

// g = dy * scale; dx = inv_variance * (g - mean(g) - x_hat * mean(g * x_hat))   (rms: without
// mean(g))
// Where all elements of a group share one scale, an implementation may move it behind the sums,
// which then are dbias and dscale: dx = inv_variance * scale * (dy - dbias / n - x_hat * dscale /
// n). Sums of dy may overflow where those of dy * scale do not.
template <class Operands>
void input_gradient(const NormBackward& op, const Operands& operands, const NormShapes& shapes) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(NormBackward::x);
  const auto dy = operands.input(NormBackward::dy);
  const auto dx = operands.output(NormBackward::dx);
  const bool scaled = operands.has_input(NormBackward::scale);
  const auto scale = operands.input(scaled ? NormBackward::scale : NormBackward::x);
  bool shared_scale = scaled;
  for (int axis = 0; axis < x.dims().rank(); ++axis)
    shared_scale &=
        shapes.parameters[axis] == 1 || shapes.parameters[axis] == shapes.statistics[axis];

  for_each(shapes.statistics, [&](const Index& index) {
    const Box group = group_box(x.dims(), shapes.statistics, index);
    const Statistics<Scalar> statistics = backward_statistics(op, operands, group, index);
    const auto gradient = [&](const Index& at) {
      return scaled ? dy.load(at) * scale.load(at) : dy.load(at);
    };
    const auto x_hat = [&](const Index& at) {
      return (x.load(at) - statistics.mean) * statistics.inv_variance;
    };
    Accumulator<Scalar> gradients, products, dbias, dscale;
    for_each_in(group, [&](const Index& at) {
      gradients.add(gradient(at));
      products.add(gradient(at) * x_hat(at));
      if (!shared_scale) return;
      dbias.add(dy.load(at));
      dscale.add(dy.load(at) * x_hat(at));
    });
    const Scalar count(real(group.size()));
    const auto mean_of = [&](const Accumulator<Scalar>& sum) {
      return op.mode == NormMode::rms ? Scalar(0.0) : sum.total() / count;
    };
    const Scalar mean_gradient = mean_of(gradients), mean_product = products.total() / count;
    const Scalar mean_dy = mean_of(dbias), mean_dy_x_hat = dscale.total() / count;
    for_each_in(group, [&](const Index& at) {
      Scalar value =
          statistics.inv_variance * (gradient(at) - mean_gradient - x_hat(at) * mean_product);
      if (shared_scale)
        value = or_overflow_of(statistics.inv_variance * scale.load(at) *
                                   (dy.load(at) - mean_dy - x_hat(at) * mean_dy_x_hat),
                               value);
      dx.store(at, value);
    });
  });
}

// dscale = sum(dy * x_hat), dbias = sum(dy), over all elements of a parameter. Parameters are
// processed in blocks, so that the statistics of a group are reused without storing all of them.
template <class Operands>
void parameter_gradients(const NormBackward& op, const Operands& operands,
                         const NormShapes& shapes) {
  using Scalar = typename Operands::Scalar;
  constexpr std::int64_t kBlock = 256;
  const auto x = operands.input(NormBackward::x);
  const auto dy = operands.input(NormBackward::dy);
  const std::int64_t parameter_count = Box::all(shapes.parameters).size();

  parallel_for((parameter_count + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t first = block * kBlock, size = std::min(kBlock, parameter_count - first);
    std::array<Accumulator<Scalar>, kBlock> dscale, dbias;
    for_each_in(Box::all(shapes.statistics), [&](const Index& index) {
      const Box group = group_box(x.dims(), shapes.statistics, index);
      Statistics<Scalar> statistics;
      bool known = false;
      for (std::int64_t i = 0; i < size; ++i) {
        const Box reached = intersection(
            group,
            parameter_box(x.dims(), shapes.parameters, unflatten(shapes.parameters, first + i)));
        if (reached.empty()) continue;
        if (!known) statistics = backward_statistics(op, operands, group, index);
        known = true;
        const auto slot = static_cast<std::size_t>(i);
        for_each_in(reached, [&](const Index& at) {
          const Scalar gradient = dy.load(at);
          dscale[slot].add(gradient * ((x.load(at) - statistics.mean) * statistics.inv_variance));
          dbias[slot].add(gradient);
        });
      }
    });
    for (std::int64_t i = 0; i < size; ++i) {
      const Index index = unflatten(shapes.parameters, first + i);
      const auto slot = static_cast<std::size_t>(i);
      if (operands.has_output(NormBackward::dscale))
        operands.output(NormBackward::dscale).store(index, dscale[slot].total());
      if (operands.has_output(NormBackward::dbias))
        operands.output(NormBackward::dbias).store(index, dbias[slot].total());
    }
  });
}

}  // namespace

template <class Operands>
void evaluate(const NormBackward& op, const Operands& operands) {
  const NormShapes shapes =
      norm_shapes(op.mode, operands.input(NormBackward::x).dims(), op.axes, op.groups);
  if (operands.has_output(NormBackward::dx)) input_gradient(op, operands, shapes);
  if (operands.has_output(NormBackward::dscale) || operands.has_output(NormBackward::dbias))
    parameter_gradients(op, operands, shapes);
}

ASHLAR_REFERENCE(NormForward);
ASHLAR_REFERENCE(NormBackward);

}  // namespace ashlar::reference
