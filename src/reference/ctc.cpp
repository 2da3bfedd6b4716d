// Connectionist temporal classification, in log space.
//
// The labels l of a sequence are interleaved with blanks: state s of S = 2 L + 1 is the blank for
// even s and label (s - 1) / 2 for odd s. With e[t, s] the log-probability of state s at time t:
//   before[t, s] = log sum over the states s' that lead to s of exp(before + e)[t - 1, s']
//   after[t, s]  = log sum over the states s' that s leads to of exp(after + e)[t + 1, s']
// s leads to s, s + 1 and, between different labels, s + 2. The loss is -log p with
//   log p = log(exp(before + e)[T - 1, S - 1] + exp(before + e)[T - 1, S - 2])
// and exp(before + e + after - log p) is the probability of passing through s at time t.
#include <algorithm>
#include <array>

#include "reference/evaluate.hpp"
#include "reference/softmax.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

// log(exp(a) + exp(b) + exp(c)); a term of -inf is absent.
double log_sum(const std::array<double, 3>& terms) {
  double largest = -kInfinity;
  for (double term : terms) largest = maximum(largest, term);
  if (largest == -kInfinity) return largest;
  double sum = 0.0;
  for (double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum);
}

// Monotonic in every term, so the ends of the intervals bound it. With the overloaded operators the
// largest term would be treated as independent of itself, and every step would double the error.
// Roundings: differences, exponentials, their sum and its logarithm (at most log 3), each relative
// to values of at most 3; then the final sum.
template <Arithmetic A>
Approx<A> log_sum(const std::array<Approx<A>, 3>& terms) {
  constexpr double kUnitsOfOne = 16.0, kUnits = 2.0;
  std::array<double, 3> middle, low, high;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    middle[i] = terms[i].value;
    low[i] = terms[i].value - terms[i].error;
    high[i] = terms[i].value + terms[i].error;
    if (terms[i].unknown()) return Approx<A>::with_error(terms[i].value, kInfinity);
  }
  const double value = log_sum(middle);
  const double spread = std::max(distance(log_sum(high), value), distance(value, log_sum(low)));
  return allow_units(Approx<A>::rounded(value, spread, kUnits), kUnitsOfOne, Approx<A>(1.0));
}

// One sequence of the batch and the forward-backward recursion over its alignments.
template <class Operands>
class Sequence {
 public:
  using Scalar = typename Operands::Scalar;

  // `first_label` is the offset of its labels if the labels are concatenated.
  Sequence(const CtcLoss& op, const Operands& operands, std::int64_t n, std::int64_t first_label,
           Scalar* scratch)
      : op_(op),
        x_(operands.input(CtcLoss::x)),
        labels_(operands.input(CtcLoss::labels)),
        n_(n),
        first_label_(first_label),
        classes_(x_.dims()[2]) {
    const bool flat = labels_.dims().rank() == 1;
    label_count_ = length(operands.input(CtcLoss::label_lengths),
                          flat ? labels_.dims()[0] - first_label : labels_.dims()[1]);
    times_ = length(operands.input(CtcLoss::input_lengths), x_.dims()[0]);
    states_ = 2 * label_count_ + 1;
    largest_ = scratch;
    sums_ = largest_ + times_;
    before_ = sums_ + times_;
    after_ = before_ + times_ * states_;
    std::fill(largest_, after_ + times_ * states_, Scalar(-kInfinity));
    if (op.input == CtcInput::logits) find_sums();
    if (has_labels_outside()) return;
    find_before();
    find_after();
    find_probability();
  }

  std::int64_t label_count() const { return label_count_; }
  std::int64_t times() const { return times_; }
  Scalar log_probability() const { return log_probability_; }
  bool impossible() const { return nominal(log_probability_) == -kInfinity; }

  // The gradient of the loss with respect to x[t, n, c].
  Scalar gradient(std::int64_t t, std::int64_t c) const {
    if (impossible()) return unknown_with(Scalar(0.0), log_probability_);
    Accumulator<Scalar> passing;
    const bool logits = op_.input == CtcInput::logits;
    for (std::int64_t s = 0; s < states_; ++s) {
      if (state_class(s) != c) continue;
      const Scalar before = before_[t * states_ + s], after = after_[t * states_ + s];
      const Scalar paths = logits ? before + emission(t, s) + after : before + after;
      constexpr double kOtherOrder = 4.0;
      passing.add(exp(allow_units(paths - log_probability_, kOtherOrder, log_probability_)));
    }
    const Scalar total = passing.total();
    return logits ? softmax_weight(load(t, c), largest_[t]) / sums_[t] - total
                  : Scalar(0.0) - total;
  }

 private:
  template <class View>
  std::int64_t length(const View& lengths, std::int64_t most) const {
    const double given = nominal(lengths.load({n_}));
    return static_cast<std::int64_t>(std::clamp(given, 0.0, real(most)));
  }
  Scalar load(std::int64_t t, std::int64_t c) const { return x_.load({t, n_, c}); }

  double label(std::int64_t i) const {
    return nominal(
        labels_.load(labels_.dims().rank() == 1 ? Index{first_label_ + i} : Index{n_, i}));
  }
  bool has_labels_outside() const {
    for (std::int64_t i = 0; i < label_count_; ++i)
      if (!(label(i) >= 0.0 && label(i) < real(classes_))) return true;
    return false;
  }
  std::int64_t state_class(std::int64_t s) const {
    return s % 2 == 0 ? op_.blank : static_cast<std::int64_t>(label((s - 1) / 2));
  }
  bool may_skip_to(std::int64_t s) const {
    return s % 2 == 1 && s >= 3 && state_class(s) != state_class(s - 2);
  }

  void find_sums() {
    for (std::int64_t t = 0; t < times_; ++t) {
      for (std::int64_t c = 0; c < classes_; ++c) largest_[t] = maximum(largest_[t], load(t, c));
      Accumulator<Scalar> sum;
      for (std::int64_t c = 0; c < classes_; ++c) sum.add(softmax_weight(load(t, c), largest_[t]));
      sums_[t] = sum.total();
    }
  }
  // e[t, s]
  Scalar emission(std::int64_t t, std::int64_t s) const {
    const Scalar x = load(t, state_class(s));
    return op_.input == CtcInput::logits ? x - largest_[t] - log(sums_[t]) : log(x);
  }

  // (states + e)[t, s], or -inf if there is no such state.
  Scalar with_emission(const Scalar* states, std::int64_t t, std::int64_t s,
                       bool allowed = true) const {
    if (!allowed || s < 0 || s >= states_) return Scalar(-kInfinity);
    return states[t * states_ + s] + emission(t, s);
  }
  void find_before() {
    for (std::int64_t t = 0; t < times_; ++t)
      for (std::int64_t s = 0; s < states_; ++s)
        before_[t * states_ + s] =
            t == 0 ? Scalar(s <= 1 ? 0.0 : -kInfinity)
                   : log_sum(std::array{with_emission(before_, t - 1, s),
                                        with_emission(before_, t - 1, s - 1),
                                        with_emission(before_, t - 1, s - 2, may_skip_to(s))});
  }
  void find_after() {
    for (std::int64_t t = times_ - 1; t >= 0; --t)
      for (std::int64_t s = 0; s < states_; ++s)
        after_[t * states_ + s] =
            t == times_ - 1
                ? Scalar(s >= states_ - 2 ? 0.0 : -kInfinity)
                : log_sum(std::array{
                      with_emission(after_, t + 1, s), with_emission(after_, t + 1, s + 1),
                      with_emission(after_, t + 1, s + 2, s + 2 < states_ && may_skip_to(s + 2))});
  }
  void find_probability() {
    if (times_ == 0) {  // an empty sequence: probability 1 without labels, else 0
      if (label_count_ == 0) log_probability_ = Scalar(0.0);
      return;
    }
    log_probability_ =
        log_sum(std::array{with_emission(before_, times_ - 1, states_ - 1),
                           with_emission(before_, times_ - 1, states_ - 2), Scalar(-kInfinity)});
  }

  const CtcLoss& op_;
  typename Operands::View x_, labels_;
  std::int64_t n_, first_label_, classes_;
  std::int64_t label_count_, times_, states_;
  Scalar *largest_, *sums_;  // softmax maximum and sum of x[t, n]
  Scalar *before_, *after_;  // [t, s]
  Scalar log_probability_ = Scalar(-kInfinity);
};

// Two values per time step and two per (time step, state), for one sequence at a time.
ScratchNeed ctc_need(const CtcLoss&, const InputDims& dims) {
  const Dims labels = dims(CtcLoss::labels);
  const std::int64_t longest = labels.rank() == 1 ? labels[0] : labels[1];
  return {.numbers = 2 * dims(CtcLoss::x)[0] * (1 + 2 * longest + 1)};
}

}  // namespace

template <class Operands>
void evaluate(const CtcLoss& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const Dims dims = operands.input(CtcLoss::x).dims();
  const auto loss = operands.output(CtcLoss::loss);
  const auto dims_of = [&](int slot) { return operands.input(slot).dims(); };
  Scratch<Operands> scratch(operands, ctc_need(op, dims_of));
  std::int64_t first_label = 0;
  for (std::int64_t n = 0; n < dims[1]; ++n) {
    const Sequence<Operands> sequence(op, operands, n, first_label, scratch.numbers());
    first_label += sequence.label_count();
    const Scalar cost = op.zero_infinity && sequence.impossible()
                            ? unknown_with(Scalar(0.0), sequence.log_probability())
                            : -sequence.log_probability();
    loss.store({n}, cost);
    if (!operands.has_output(CtcLoss::gradient)) continue;
    const auto gradient = operands.output(CtcLoss::gradient);
    for_each({dims[0], dims[2]}, [&](const Index& index) {
      const Index to = {index[0], n, index[1]};
      if (index[0] < sequence.times())
        gradient.store(to, sequence.gradient(index[0], index[1]));
      else if (op.padding == CtcPadding::skip)
        gradient.store(to, operands.input(CtcLoss::previous).load(to));
      else
        gradient.store(to, Scalar(0.0));
    });
  }
}
ASHLAR_REFERENCE_WITH_SCRATCH(CtcLoss, ctc_need);

}  // namespace ashlar::reference
