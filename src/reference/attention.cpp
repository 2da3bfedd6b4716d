// Scaled dot-product attention, per batch b and head h:
//   s_ij = scale * sum_d q_id k_jd + bias_ij     for the columns j that row i sees
//   p_ij = exp(s_ij - stats_i), stats_i = log(sum_j exp(s_ij))
//   o_i  = sum_j keep_ij p_ij v_j                keep_ij: 0 or 1 / (1 - dropout)
#include "reference/attention.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const AttentionForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const AttentionProblem<AttentionForward, Operands> problem(op, operands);
  const auto o = operands.output(AttentionForward::o);

  for_each({o.dims()[0], o.dims()[1], o.dims()[2]}, [&](const Index& row) {
    const std::int64_t b = row[0], h = row[1], i = row[2];
    const RowSum<Scalar> sum = problem.row_sum(b, h, i);
    const Columns columns = sum.sees_nothing() ? Columns{} : problem.columns(b, i);
    for_each_block<Scalar>(o.dims()[3], [&](RowAccumulator<Scalar>& totals) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const Scalar weight = softmax_weight(problem.score(b, h, i, j), sum.largest);
        totals.add(problem.rounded(problem.kept(b, h, i, j, weight)), problem.v(),
                   problem.row_for_head(problem.v(), b, h, j));
      }
      totals.store(o, {b, h, i, 0}, [&](Scalar total) {
        return sum.sees_nothing() ? Scalar(0.0) : total / sum.weights;
      });
    });
    if (operands.has_output(AttentionForward::stats))
      operands.output(AttentionForward::stats).store({b, h, i, 0}, sum.stats());
  });
}

// dp_ij = keep_ij sum_d do_id v_jd, delta_i = sum_d do_id o_id, ds_ij = p_ij (dp_ij - delta_i)
//   dq_i = scale sum_j ds_ij k_j
//   dk_j = scale sum_i ds_ij q_i
//   dv_j = sum_i keep_ij p_ij do_i
//   dbias_ij = ds_ij
// k, v and bias that serve several heads (bias: also batches, rows or columns) sum over all.
namespace {

template <class Operands>
class Backward {
 public:
  using Scalar = typename Operands::Scalar;
  Backward(const AttentionBackward& op, const Operands& operands)
      : problem_(op, operands),
        operands_(operands),
        o_(operands.input(AttentionBackward::o)),
        d_o_(operands.input(AttentionBackward::d_o)),
        stats_(operands.input(AttentionBackward::stats)) {}

  // What a row's gradients need besides q, k and v.
  struct Row {
    Columns columns;
    Scalar stats, delta;
  };
  Row row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    Row row{problem_.columns(b, i), stats_.load({b, h, i, 0}), Scalar(0.0)};
    if (nominal(row.stats) == -kInfinity) row.columns = {};
    row.delta = dot(d_o_, {b, h, i, 0}, o_, {b, h, i, 0});
    return row;
  }
  Scalar weight(const Row& row, std::int64_t b, std::int64_t h, std::int64_t i,
                std::int64_t j) const {
    return softmax_weight(problem_.score(b, h, i, j), row.stats);
  }
  Scalar ds(const Row& row, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const Scalar dp =
        dot(d_o_, {b, h, i, 0}, problem_.v(), problem_.row_for_head(problem_.v(), b, h, j));
    return weight(row, b, h, i, j) * (problem_.kept(b, h, i, j, dp) - row.delta);
  }

  void dq() const {
    const auto dq = operands_.output(AttentionBackward::dq);
    for_each({dq.dims()[0], dq.dims()[1], dq.dims()[2]}, [&](const Index& at) {
      const std::int64_t b = at[0], h = at[1], i = at[2];
      const Row row = this->row(b, h, i);
      for_each_block<Scalar>(dq.dims()[3], [&](RowAccumulator<Scalar>& totals) {
        for (std::int64_t j = row.columns.begin; j < row.columns.end; ++j)
          totals.add(problem_.rounded(ds(row, b, h, i, j)), problem_.k(),
                     problem_.row_for_head(problem_.k(), b, h, j));
        totals.store(dq, {b, h, i, 0}, [&](Scalar total) { return problem_.scale() * total; });
      });
    });
  }

  // Row j of dk or dv: the sum over the heads it serves and the rows that see it of
  // factor(row, b, h, i, j) * source[b, h, i, :].
  template <class Factor>
  void column_gradient(int output, const typename Operands::View& source, Scalar scale,
                       const Factor& factor) const {
    const auto gradient = operands_.output(output);
    const Dims& dims = gradient.dims();
    const std::int64_t heads = source.dims()[1], rows = source.dims()[2];
    for_each({dims[0], dims[1], dims[2]}, [&](const Index& at) {
      const std::int64_t b = at[0], j = at[2], group = heads / dims[1];
      for_each_block<Scalar>(dims[3], [&](RowAccumulator<Scalar>& totals) {
        for (std::int64_t h = at[1] * group; h < (at[1] + 1) * group; ++h)
          for (std::int64_t i = 0; i < rows; ++i) {
            if (!problem_.columns(b, i).contains(j)) continue;
            const Row row = this->row(b, h, i);
            if (row.columns.contains(j))
              totals.add(problem_.rounded(factor(row, b, h, i, j)), source, {b, h, i, 0});
          }
        totals.store(gradient, {b, at[1], j, 0}, [&](Scalar total) { return scale * total; });
      });
    });
  }
  void dk() const {
    column_gradient(AttentionBackward::dk, problem_.q(), problem_.scale(),
                    [this](const Row& row, auto... at) { return ds(row, at...); });
  }
  void dv() const {
    column_gradient(AttentionBackward::dv, d_o_, Scalar(1.0), [this](const Row& row, auto... at) {
      return problem_.kept(at..., weight(row, at...));
    });
  }

  void dbias() const {
    const auto dbias = operands_.output(AttentionBackward::dbias);
    const Dims scores{d_o_.dims()[0], d_o_.dims()[1], d_o_.dims()[2], problem_.k().dims()[2]};
    for_each(dbias.dims(), [&](const Index& at) {
      Box served = Box::all(scores);
      for (int axis = 0; axis < scores.rank(); ++axis)
        if (dbias.dims()[axis] != 1) {
          served.begin[axis] = at[axis];
          served.end[axis] = at[axis] + 1;
        }
      Accumulator<Scalar> total;
      for_each_in(served, [&](const Index& score) {
        const std::int64_t b = score[0], h = score[1], i = score[2], j = score[3];
        if (!problem_.columns(b, i).contains(j)) return;
        const Row row = this->row(b, h, i);
        if (row.columns.contains(j)) total.add(ds(row, b, h, i, j));
      });
      dbias.store(at, total.total());
    });
  }

 private:
  AttentionProblem<AttentionBackward, Operands> problem_;
  const Operands& operands_;
  typename Operands::View o_, d_o_, stats_;
};

}  // namespace

template <class Operands>
void evaluate(const AttentionBackward& op, const Operands& operands) {
  const Backward<Operands> backward(op, operands);
  if (operands.has_output(AttentionBackward::dq)) backward.dq();
  if (operands.has_output(AttentionBackward::dk)) backward.dk();
  if (operands.has_output(AttentionBackward::dv)) backward.dv();
  if (operands.has_output(AttentionBackward::dbias)) backward.dbias();
}

ASHLAR_REFERENCE_INSTANTIATE(AttentionForward);
ASHLAR_REFERENCE_INSTANTIATE(AttentionBackward);

}  // namespace ashlar::reference
