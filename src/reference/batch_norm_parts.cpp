// Batch normalisation split into separate operations: gen_stats, bn_finalize, bn_backward_weights.
// All are per channel (axis 1).
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

Box channel_box(const Dims& x, const Index& channel) {
  Box box = Box::all(x);
  box.begin[1] = channel[1];
  box.end[1] = channel[1] + 1;
  return box;
}

// A one-element operand, or the attribute it overrides.
template <class Operands>
typename Operands::Scalar one_of(const Operands& operands, int slot, double attribute) {
  if (operands.has_input(slot)) return operands.input(slot).load(Index{0});
  return typename Operands::Scalar(attribute);
}

template <class Operands, class Scalar>
void store_if_wanted(const Operands& operands, int slot, const Index& index, Scalar value) {
  if (operands.has_output(slot)) operands.output(slot).store(index, value);
}

}  // namespace

template <class Operands>
void evaluate(const GenStats&, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(GenStats::x);
  for_each(operands.output(GenStats::sum).dims(), [&](const Index& channel) {
    Accumulator<Scalar> sum, squares;
    for_each_in(channel_box(x.dims(), channel), [&](const Index& at) {
      const Scalar value = x.load(at);
      sum.add(value);
      squares.add(value * value);
    });
    operands.output(GenStats::sum).store(channel, sum.total());
    operands.output(GenStats::sq_sum).store(channel, squares.total());
  });
}
ASHLAR_REFERENCE(GenStats);

template <class Operands>
void evaluate(const BnFinalize& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  using Bn = BnFinalize;
  const Scalar epsilon = one_of(operands, Bn::epsilon_tensor, op.epsilon);
  const Scalar momentum = one_of(operands, Bn::momentum_tensor, op.momentum);
  const Scalar count = one_of(operands, Bn::count_tensor, real(op.count));

  for_each(operands.output(Bn::eq_scale).dims(), [&](const Index& channel) {
    Scalar mean, variance;
    if (op.phase == NormPhase::inference) {
      mean = operands.input(Bn::running_mean).load(channel);
      variance = operands.input(Bn::running_var).load(channel);
    } else {
      mean = operands.input(Bn::sum).load(channel) / count;
      // Rounding may make the difference negative.
      variance =
          maximum(operands.input(Bn::sq_sum).load(channel) / count - mean * mean, Scalar(0.0));
    }
    const Scalar inv_variance = rsqrt(variance + epsilon);
    const Scalar eq_scale = operands.input(Bn::scale).load(channel) * inv_variance;
    operands.output(Bn::eq_scale).store(channel, eq_scale);
    store_if_wanted(operands, Bn::eq_bias, channel,
                    operands.input(Bn::bias).load(channel) - mean * eq_scale);
    store_if_wanted(operands, Bn::saved_mean, channel, mean);
    store_if_wanted(operands, Bn::saved_inv_variance, channel, inv_variance);

    const Scalar one(1.0);
    const auto moved = [&](int running, Scalar batch) {
      return (one - momentum) * operands.input(running).load(channel) + momentum * batch;
    };
    // Unbiased, as in norm_forward: n / (n - 1) times the batch variance; unchanged for n = 1.
    const Scalar unbiased = nominal(count) > 1.0 ? variance * (count / (count - one)) : variance;
    if (operands.has_output(Bn::next_running_mean))
      operands.output(Bn::next_running_mean).store(channel, moved(Bn::running_mean, mean));
    if (operands.has_output(Bn::next_running_var))
      operands.output(Bn::next_running_var).store(channel, moved(Bn::running_var, unbiased));
  });
}
ASHLAR_REFERENCE(BnFinalize);

// dx = scale * inv_variance * (dy - dbias / n - x_hat * dscale / n), as a linear function of dy and
// x.
template <class Operands>
void evaluate(const BnBackwardWeights&, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  using Bn = BnBackwardWeights;
  const auto x = operands.input(Bn::x);
  const auto dy = operands.input(Bn::dy);
  for_each(operands.output(Bn::dscale).dims(), [&](const Index& channel) {
    const Box box = channel_box(x.dims(), channel);
    const Scalar mean = operands.input(Bn::mean).load(channel);
    const Scalar inv_variance = operands.input(Bn::inv_variance).load(channel);
    Accumulator<Scalar> gradients, products;
    for_each_in(box, [&](const Index& at) {
      gradients.add(dy.load(at));
      products.add(dy.load(at) * ((x.load(at) - mean) * inv_variance));
    });
    const Scalar dscale = products.total(), dbias = gradients.total(), n(real(box.size()));
    const Scalar slope = operands.input(Bn::scale).load(channel) * inv_variance;
    const Scalar x_slope = -(slope * inv_variance * (dscale / n));
    operands.output(Bn::dscale).store(channel, dscale);
    store_if_wanted(operands, Bn::dbias, channel, dbias);
    store_if_wanted(operands, Bn::eq_dy_scale, channel, slope);
    store_if_wanted(operands, Bn::eq_x_scale, channel, x_slope);
    store_if_wanted(operands, Bn::eq_bias, channel, -(slope * (dbias / n)) - x_slope * mean);
  });
}
ASHLAR_REFERENCE(BnBackwardWeights);

}  // namespace ashlar::reference
