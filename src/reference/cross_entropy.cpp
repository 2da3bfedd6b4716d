// Cross-entropy of class indices over the last axis. With stats = max + log(sum(exp(x - max))), C
// classes and s = label_smoothing,
//   loss = (1 - s) * (stats - x[target]) + s * (stats - mean(x))
// 0 for ignored rows and NaN for targets that are no class; `mean` averages over the rows that are
// not ignored, NaN if there are none.
// A row that is all -inf gives NaN, which is unknown to the oracle, as in softmax.
#include "reference/evaluate.hpp"
#include "reference/softmax.hpp"
#include "reference/uncertainty.hpp"
#include "reference/untrusted_integer.hpp"

namespace ashlar::reference {

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Dims rows_of(const Dims& x) {
  Dims rows = x;
  rows[x.rank() - 1] = 1;
  return rows;
}

template <class View>
bool is_ignored(const View& target, const Index& row, std::int64_t ignore_index) {
  return nominal(target.load(row)) == static_cast<double>(ignore_index);
}

// Writes stats; returns the loss of a row.
template <class Operands>
auto row_loss(const CrossEntropyForward& op, const Operands& operands, const Index& row) {
  using Op = CrossEntropyForward;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x);
  const auto target = operands.input(Op::target);
  const int axis = row.rank() - 1;
  const std::int64_t classes = x.dims()[axis];
  const auto logit = [&](std::int64_t c) {
    Index at = row;
    at[axis] = c;
    return x.load(at);
  };

  Scalar largest(-kInfinity);
  Accumulator<Scalar> logits, weights;
  for (std::int64_t c = 0; c < classes; ++c) largest = maximum(largest, logit(c));
  for (std::int64_t c = 0; c < classes; ++c) {
    logits.add(logit(c));
    weights.add(softmax_weight(logit(c), largest));
  }
  const Scalar log_sum = log(weights.total());
  const bool certain = nominal(largest) != -kInfinity;
  if (operands.has_output(Op::stats))
    operands.output(Op::stats).store(row, unknown_unless(certain, largest + log_sum));

  if (is_ignored(target, row, op.ignore_index)) return Scalar(0.0);
  const std::int64_t wanted = position_within(target, row, classes);
  if (wanted < 0) return Scalar(kNotANumber);
  const Scalar loss = log_sum - (logit(wanted) - largest);
  if (op.label_smoothing == 0.0) return unknown_unless(certain, loss);
  const Scalar mean = logits.total() / Scalar(real(classes));
  return unknown_unless(certain, loss * Scalar(1.0 - op.label_smoothing) +
                                     Scalar(op.label_smoothing) * (log_sum - (mean - largest)));
}

}  // namespace

template <class Operands>
void evaluate(const CrossEntropyForward& op, const Operands& operands) {
  using Op = CrossEntropyForward;
  using Scalar = typename Operands::Scalar;
  const auto loss = operands.output(Op::loss);
  const auto target = operands.input(Op::target);
  const Dims rows = rows_of(operands.input(Op::x).dims());
  if (!op.mean)
    return for_each(rows, [&](const Index& row) { loss.store(row, row_loss(op, operands, row)); });
  Accumulator<Scalar> sum;
  std::int64_t count = 0;
  for_each_in(Box::all(rows), [&](const Index& row) {
    const Scalar value = row_loss(op, operands, row);
    if (is_ignored(target, row, op.ignore_index)) return;
    sum.add(value);
    ++count;
  });
  loss.store(Dims::filled(rows.rank(), 0), sum.total() / Scalar(real(count)));
}

// dx = dloss * (p - (1 - s) * [class == target] - s / C), p = exp(x - stats); with `mean` divided
// by the number of rows that are not ignored.
template <class Operands>
void evaluate(const CrossEntropyBackward& op, const Operands& operands) {
  using Op = CrossEntropyBackward;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x);
  const auto target = operands.input(Op::target);
  const auto stats = operands.input(Op::stats);
  const auto dloss = operands.input(Op::dloss);
  const auto dx = operands.output(Op::dx);
  const Dims rows = rows_of(x.dims());
  const int axis = rows.rank() - 1;
  const std::int64_t classes = x.dims()[axis];
  std::int64_t count = 0;
  if (op.mean)
    for_each_in(Box::all(rows), [&](const Index& row) {
      if (!is_ignored(target, row, op.ignore_index)) ++count;
    });

  for_each(rows, [&](const Index& row) {
    const bool ignored = is_ignored(target, row, op.ignore_index);
    const std::int64_t wanted = position_within(target, row, classes);
    Scalar factor = dloss.load(row);
    if (op.mean) factor = factor / Scalar(real(count));
    Index at = row;
    for (std::int64_t c = 0; c < classes; ++c) {
      at[axis] = c;
      Scalar value = softmax_weight(x.load(at), stats.load(row));
      if (c == wanted) value = value - Scalar(1.0 - op.label_smoothing);
      if (op.label_smoothing != 0.0) value = value - Scalar(op.label_smoothing / real(classes));
      value = value * factor;
      if (wanted < 0) value = Scalar(kNotANumber);
      dx.store(at, ignored ? Scalar(0.0) : value);
    }
  });
}

ASHLAR_REFERENCE(CrossEntropyForward);
ASHLAR_REFERENCE(CrossEntropyBackward);

}  // namespace ashlar::reference
