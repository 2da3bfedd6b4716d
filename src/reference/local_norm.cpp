// Local normalisation: LRN over channels (axis 1), divisive over the spatial axes
// (2 and up). With the window of i, w elements along each of its axes, d(j, i) = x(j) - mean(i)
// and g(i) = 2 alpha beta / w^axes * dy(i) x(i) s(i)^(-beta - 1):
//   s(i)      = k + alpha / w^axes * sum of d(j, i)^2 over the window of i
//   y(i)      = x(i) * s(i)^-beta
//   dx(j)     = dy(j) * s(j)^-beta - sum of g(i) d(j, i) over all i whose window holds j
//   dmeans(i) = g(i) * sum of d(j, i) over the window of i
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

template <class Operands, class Op>
class Neighbourhood {
 public:
  using Scalar = typename Operands::Scalar;
  static constexpr bool kDivisive =
      std::is_same_v<Op, DivisiveNormForward> || std::is_same_v<Op, DivisiveNormBackward>;

  Neighbourhood(const Op& op, const Operands& operands)
      : op_(op), operands_(operands), x_(operands.input(Op::x)) {
    first_ = kDivisive ? 2 : 1;
    last_ = kDivisive ? x_.dims().rank() : 2;
    factor_ = Scalar(op.alpha);
    for (int axis = first_; axis < last_; ++axis) factor_ = factor_ / Scalar(real(op.window));
  }

  // The window extends below() elements down and above() elements up.
  std::int64_t below() const { return (op_.window - 1) / 2; }
  std::int64_t above() const { return op_.window - 1 - below(); }
  Scalar factor() const { return factor_; }

  // The elements up to `down` below and `up` above an element along the window axes.
  Box around(const Index& at, std::int64_t down, std::int64_t up) const {
    Box box{at, at};
    for (int axis = 0; axis < at.rank(); ++axis) {
      const bool inside = axis >= first_ && axis < last_;
      box.begin[axis] = inside ? at[axis] - std::min(at[axis], down) : at[axis];
      box.end[axis] = at[axis] + 1;
      if (inside) box.end[axis] += std::min(x_.dims()[axis] - at[axis] - 1, up);
    }
    return box;
  }

  // d(at, centre)
  Scalar deviation(const Index& at, const Index& centre) const {
    if constexpr (kDivisive)
      if (operands_.has_input(Op::means))
        return x_.load(at) - operands_.input(Op::means).load(centre);
    return x_.load(at);
  }

  Scalar divisor(const Index& at) const {  // s
    Accumulator<Scalar> squares;
    for_each_in(around(at, below(), above()), [&](const Index& other) {
      squares.add(deviation(other, at) * deviation(other, at));
    });
    return Scalar(op_.k) + factor_ * squares.total();
  }

 private:
  const Op& op_;
  const Operands& operands_;
  decltype(std::declval<Operands>().input(0)) x_;
  int first_, last_;  // axes of the window
  Scalar factor_;     // alpha / w^axes
};

template <class Op, class Operands>
void forward(const Op& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const Neighbourhood<Operands, Op> near(op, operands);
  const auto x = operands.input(Op::x);
  for_each(x.dims(), [&](const Index& at) {
    operands.output(Op::y).store(at, x.load(at) * pow(near.divisor(at), Scalar(-op.beta)));
  });
}

template <class Op, class Operands>
void backward(const Op& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const Neighbourhood<Operands, Op> near(op, operands);
  const auto x = operands.input(Op::x);
  const auto dy = operands.input(Op::dy);
  const Scalar slope = Scalar(2.0 * op.beta) * near.factor();
  const auto share = [&](const Index& at) {  // g / slope
    return dy.load(at) * x.load(at) * pow(near.divisor(at), Scalar(-op.beta - 1.0));
  };
  for_each(x.dims(), [&](const Index& at) {
    Accumulator<Scalar> through_windows;
    for_each_in(near.around(at, near.above(), near.below()), [&](const Index& centre) {
      through_windows.add(share(centre) * near.deviation(at, centre));
    });
    operands.output(Op::dx).store(at, dy.load(at) * pow(near.divisor(at), Scalar(-op.beta)) -
                                          slope * through_windows.total());
    if constexpr (Neighbourhood<Operands, Op>::kDivisive)
      if (operands.has_output(Op::dmeans)) {
        Accumulator<Scalar> deviations;
        for_each_in(near.around(at, near.below(), near.above()),
                    [&](const Index& other) { deviations.add(near.deviation(other, at)); });
        operands.output(Op::dmeans).store(at, slope * share(at) * deviations.total());
      }
  });
}

}  // namespace

template <class Operands>
void evaluate(const LrnForward& op, const Operands& operands) {
  forward(op, operands);
}
ASHLAR_REFERENCE(LrnForward);

template <class Operands>
void evaluate(const LrnBackward& op, const Operands& operands) {
  backward(op, operands);
}
ASHLAR_REFERENCE(LrnBackward);

template <class Operands>
void evaluate(const DivisiveNormForward& op, const Operands& operands) {
  forward(op, operands);
}
ASHLAR_REFERENCE(DivisiveNormForward);

template <class Operands>
void evaluate(const DivisiveNormBackward& op, const Operands& operands) {
  backward(op, operands);
}
ASHLAR_REFERENCE(DivisiveNormBackward);

}  // namespace ashlar::reference
