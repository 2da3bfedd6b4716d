// y[t] = act(bias + sum over i of w[i] * past[t + i]) per channel, where past is initial_state
// (absent: zeros) followed by x, so that past[t + K - 1] = x[t].
#include "reference/activation.hpp"
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

template <class Op, class Operands>
class CausalConv {
 public:
  using Scalar = typename Operands::Scalar;
  explicit CausalConv(const Op& op, const Operands& operands)
      : op_(op),
        operands_(operands),
        x_(operands.input(Op::x)),
        w_(operands.input(Op::w)),
        history_(w_.dims()[1] - 1) {}

  std::int64_t taps() const { return history_ + 1; }
  std::int64_t history() const { return history_; }
  std::int64_t steps() const { return x_.dims()[2]; }
  std::int64_t batches() const { return x_.dims()[0]; }
  Scalar weight(std::int64_t c, std::int64_t i) const { return w_.load({c, i}); }
  Scalar past(std::int64_t b, std::int64_t c, std::int64_t position) const {
    if (position >= history_) return x_.load({b, c, position - history_});
    if (!operands_.has_input(Op::initial_state)) return Scalar(0.0);
    return operands_.input(Op::initial_state).load({b, c, position});
  }
  // Before the activation.
  Scalar sum(std::int64_t b, std::int64_t c, std::int64_t t) const {
    Accumulator<Scalar> total;
    for (std::int64_t i = 0; i < taps(); ++i) {
      const bool padding = t + i < history_ && !operands_.has_input(Op::initial_state);
      padding ? total.add_padding(weight(c, i)) : total.add(weight(c, i) * past(b, c, t + i));
    }
    if (operands_.has_input(Op::bias)) total.add(operands_.input(Op::bias).load({c}));
    return total.total();
  }

 private:
  const Op& op_;
  const Operands& operands_;
  typename Operands::View x_, w_;
  std::int64_t history_;
};

}  // namespace

template <class Operands>
void evaluate(const CausalConvForward& op, const Operands& operands) {
  using Op = CausalConvForward;
  const CausalConv<Op, Operands> conv(op, operands);
  if (operands.has_output(Op::y)) {
    const auto y = operands.output(Op::y);
    for_each(y.dims(), [&](const Index& at) {
      const auto sum = conv.sum(at[0], at[1], at[2]);
      y.store(at, op.activation == CausalConvActivation::silu ? swish(Pointwise{}, sum) : sum);
    });
  }
  if (operands.has_output(Op::final_state)) {
    const auto state = operands.output(Op::final_state);
    for_each(state.dims(), [&](const Index& at) {
      state.store(at, conv.past(at[0], at[1], conv.steps() + at[2]));
    });
  }
}

// With g[t] = dy[t] * act'(sum[t]):
//   dpast[p] = sum over i of w[i] * g[p - i],  dw[i] = sum over b, t of g[t] * past[t + i],
//   dbias = sum over b, t of g[t]
template <class Operands>
void evaluate(const CausalConvBackward& op, const Operands& operands) {
  using Op = CausalConvBackward;
  using Scalar = typename Operands::Scalar;
  const CausalConv<Op, Operands> conv(op, operands);
  const auto dy = operands.input(Op::dy);
  const auto gradient = [&](std::int64_t b, std::int64_t c, std::int64_t t) {
    const Scalar g = dy.load({b, c, t});
    if (op.activation == CausalConvActivation::identity) return g;
    return g * swish_slope(Pointwise{}, conv.sum(b, c, t));
  };
  const auto dpast = [&](std::int64_t b, std::int64_t c, std::int64_t position) {
    Accumulator<Scalar> total;
    for (std::int64_t i = 0; i < conv.taps(); ++i) {
      const std::int64_t t = position - i;
      if (t >= 0 && t < conv.steps())
        total.add(conv.weight(c, i) * gradient(b, c, t));
      else
        total.add_padding(conv.weight(c, i));
    }
    return total.total();
  };
  if (operands.has_output(Op::dx)) {
    const auto dx = operands.output(Op::dx);
    for_each(dx.dims(),
             [&](const Index& at) { dx.store(at, dpast(at[0], at[1], at[2] + conv.history())); });
  }
  if (operands.has_output(Op::dinitial_state)) {
    const auto state = operands.output(Op::dinitial_state);
    for_each(state.dims(), [&](const Index& at) { state.store(at, dpast(at[0], at[1], at[2])); });
  }
  const auto sum_over_time = [&](std::int64_t c, const auto& factor) {
    Accumulator<Scalar> total;
    for (std::int64_t b = 0; b < conv.batches(); ++b)
      for (std::int64_t t = 0; t < conv.steps(); ++t) total.add(gradient(b, c, t) * factor(b, t));
    return total.total();
  };
  if (operands.has_output(Op::dw)) {
    const auto dw = operands.output(Op::dw);
    for_each(dw.dims(), [&](const Index& at) {
      dw.store(at, sum_over_time(at[0], [&](std::int64_t b, std::int64_t t) {
                 return conv.past(b, at[0], t + at[1]);
               }));
    });
  }
  if (operands.has_output(Op::dbias)) {
    const auto dbias = operands.output(Op::dbias);
    for_each(dbias.dims(), [&](const Index& at) {
      dbias.store(at, sum_over_time(at[0], [](std::int64_t, std::int64_t) { return Scalar(1.0); }));
    });
  }
}

ASHLAR_REFERENCE(CausalConvForward);
ASHLAR_REFERENCE(CausalConvBackward);

}  // namespace ashlar::reference
