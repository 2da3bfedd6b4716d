// Gradients of attention from its outputs o and stats and the gradient do of o:
//   dp_ij = keep_ij sum_d do_id v_jd, delta_i = sum_d do_id o_id
//   dm_ij = p_ij (dp_ij - delta_i)          of the score behind modifier, bias and ALiBi
//   ds_ij = dm_ij * modifier' * cap'        of scale * q k^T
//   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i keep_ij p_ij do_i
//   dbias_ij = dm_ij,  dsink_h = -sum_i exp(sink_h - stats_i) delta_i
// Gradients of k, v and bias that are shared by several heads (bias: also batches, rows or columns;
// pages: also batches) are sums over all of them.
#include "reference/attention.hpp"
#include "reference/shared_maximum.hpp"

namespace ashlar::reference {

namespace {

template <class Operands>
class Backward {
 public:
  using Op = AttentionBackward;
  using Scalar = typename Operands::Scalar;
  using View = typename Operands::View;
  Backward(const Op& op, const Operands& operands)
      : op_(op),
        problem_(op, operands),
        operands_(operands),
        o_(operands.input(Op::o)),
        d_o_(operands.input(Op::d_o)),
        stats_(operands.input(Op::stats)),
        derived_(op.score_modifier.empty() || !op.score_modifier_gradient.empty()
                     ? ScoreProgram()
                     : gradient_of(op.score_modifier)) {}

  // Per-row values of the gradients besides q, k and v.
  struct Row {
    bool is_fully_masked;
    Scalar stats, delta;
  };
  Row row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const Scalar stats = stats_.load({b, h, i, 0});
    return {
        nominal(stats) == -kInfinity || !problem_.row_exists(b, i), stats,
        problem_.times(dot(d_o_, {b, h, i, 0}, o_, {b, h, i, 0}), {Op::descale_do, Op::descale_o})};
  }
  Scalar weight(const Row& row, const ScoreIndex& at) const {
    return softmax_weight(problem_.score(at), row.stats);
  }
  // Gradient of the softmax's input score.
  Scalar dm(const Row& row, const ScoreIndex& at) const {
    const Scalar dp =
        problem_.times(dot(d_o_, {at.b, at.h, at.i, 0}, problem_.v(), problem_.v_row(at)),
                       {Op::descale_do, Op::descale_v});
    return weight(row, at) * (problem_.kept(at, dp) - row.delta);
  }
  // Gradient of scale * q k^T.
  Scalar ds(const Row& row, const ScoreIndex& at) const {
    Scalar gradient = dm(row, at);
    if (op_.score_modifier.empty() && !op_.soft_cap) return gradient;
    const Scalar scaled = problem_.scaled_score(at);
    if (!op_.score_modifier.empty())
      gradient =
          run_score_program(derived_.empty() ? op_.score_modifier_gradient : derived_,
                            problem_.program_operands(at, problem_.capped(scaled), gradient));
    return op_.soft_cap ? gradient * tanh_slope(scaled / Scalar(*op_.soft_cap)) : gradient;
  }

  // p and ds as operands of the gradient matmuls. In fp8 the scale is applied before rounding;
  // otherwise it may be applied later.
  bool scales_first() const { return is_fp8(d_o_.dtype()); }
  Scalar p_operand(const Row& row, const ScoreIndex& at) const {
    return as_operand(problem_.q().dtype(),
                      problem_.times(problem_.kept(at, weight(row, at)), {Op::scale_s}));
  }
  Scalar ds_operand(const Row& row, const ScoreIndex& at) const {
    const Scalar gradient = scales_first() ? problem_.scale() * ds(row, at) : ds(row, at);
    return as_operand(scales_first() ? d_o_.dtype() : problem_.q().dtype(),
                      problem_.times(gradient, {Op::scale_dp}));
  }
  Scalar scale_later(Scalar total) const {
    return scales_first() ? total : problem_.scale() * total;
  }

  // The slots of a gradient: output, amax, scale.
  struct Leaving {
    int output, amax, scale;
    std::initializer_list<int> descales;
  };
  template <class Product>
  void store(const Leaving& leaving, const RowAccumulator<Scalar>& totals,
             const std::optional<View>& gradient, const Index& row, SharedMaximum<Scalar>& amax,
             const Product& product) const {
    Scalar largest(0.0);
    totals.for_each(row, [&](const Index& at, Scalar total) {
      const Scalar value = problem_.times(product(total), leaving.descales);
      largest = maximum(largest, absolute(value));
      if (gradient) gradient->store(at, problem_.times(value, {leaving.scale}));
    });
    amax.add(largest);
  }
  std::optional<View> optional_output(int slot) const {
    return operands_.has_output(slot) ? std::optional<View>(operands_.output(slot)) : std::nullopt;
  }
  void store_amax(int slot, const SharedMaximum<Scalar>& amax) const {
    if (operands_.has_output(slot)) operands_.output(slot).store({0, 0, 0, 0}, amax.largest());
  }

  void dq() const {
    const Leaving leaving{Op::dq, Op::amax_dq, Op::scale_dq, {Op::descale_dp, Op::descale_k}};
    const std::optional<View> dq = optional_output(Op::dq);
    const Dims& dims = problem_.q().dims();
    SharedMaximum<Scalar> amax;
    for_each({dims[0], dims[1], dims[2]}, [&](const Index& at) {
      const std::int64_t b = at[0], h = at[1], i = at[2];
      const Row row = this->row(b, h, i);
      for_each_block<Scalar>(dims[3], [&](RowAccumulator<Scalar>& totals) {
        if (!row.is_fully_masked)
          problem_.for_each_visible(b, h, i, [&](const ScoreIndex& place) {
            totals.add(ds_operand(row, place), problem_.k(), problem_.k_row(place));
          });
        store(leaving, totals, dq, {b, h, i, 0}, amax,
              [&](Scalar total) { return scale_later(total); });
      });
    });
    store_amax(leaving.amax, amax);
  }

  // Calls body(b, j) for every key stored in row `row` of block (or batch) `block` of k or v.
  template <class Body>
  void for_each_key(const std::optional<View>& table, const View& keys, std::int64_t block,
                    std::int64_t row, const Body& body) const {
    if (!table) return body(block, row);
    for (std::int64_t b = 0; b < problem_.q().dims()[0]; ++b)
      for (std::int64_t j = row; j < problem_.keys(); j += keys.dims()[2])
        if (problem_.page(*table, keys, b, j) == block) body(b, j);
  }
  // Rows of dk or dv: the sum of factor(row, index) * source[b, h, i, :] over the keys stored
  // there, the query heads that share them and the query rows that attend to them.
  template <class Factor, class Product>
  void column_gradient(const Leaving& leaving, const std::optional<View>& table, const View& keys,
                       const View& source, const Factor& factor, const Product& product) const {
    const std::optional<View> gradient = optional_output(leaving.output);
    const Dims& dims = keys.dims();
    const std::int64_t heads = source.dims()[1], rows = source.dims()[2];
    SharedMaximum<Scalar> amax;
    for_each({dims[0], dims[1], dims[2]}, [&](const Index& at) {
      const std::int64_t group = heads / dims[1];
      for_each_block<Scalar>(dims[3], [&](RowAccumulator<Scalar>& totals) {
        for_each_key(table, keys, at[0], at[2], [&](std::int64_t b, std::int64_t j) {
          for (std::int64_t h = at[1] * group; h < (at[1] + 1) * group; ++h)
            for (std::int64_t i = 0; i < rows; ++i) {
              const ScoreIndex place{b, h, i, j};
              if (!problem_.columns(b, i).contains(j) || problem_.hidden(place)) continue;
              const Row row = this->row(b, h, i);
              if (!row.is_fully_masked) totals.add(factor(row, place), source, {b, h, i, 0});
            }
        });
        store(leaving, totals, gradient, {at[0], at[1], at[2], 0}, amax, product);
      });
    });
    store_amax(leaving.amax, amax);
  }
  void dk() const {
    column_gradient(
        {Op::dk, Op::amax_dk, Op::scale_dk, {Op::descale_dp, Op::descale_q}}, problem_.k_table(),
        problem_.k(), problem_.q(),
        [this](const Row& row, const ScoreIndex& at) { return ds_operand(row, at); },
        [this](Scalar total) { return scale_later(total); });
  }
  void dv() const {
    column_gradient(
        {Op::dv, Op::amax_dv, Op::scale_dv, {Op::descale_s, Op::descale_do}}, problem_.v_table(),
        problem_.v(), d_o_,
        [this](const Row& row, const ScoreIndex& at) { return p_operand(row, at); },
        [](Scalar total) { return total; });
  }

  void dbias() const {
    const auto dbias = operands_.output(Op::dbias);
    const Dims scores = problem_.scores();
    for_each(dbias.dims(), [&](const Index& at) {
      Box served = Box::all(scores);
      for (int axis = 0; axis < scores.rank(); ++axis)
        if (dbias.dims()[axis] != 1) {
          served.begin[axis] = at[axis];
          served.end[axis] = at[axis] + 1;
        }
      Accumulator<Scalar> total;
      for_each_in(served, [&](const Index& score) {
        const ScoreIndex place{score[0], score[1], score[2], score[3]};
        if (!problem_.columns(place.b, place.i).contains(place.j) || problem_.hidden(place)) return;
        const Row row = this->row(place.b, place.h, place.i);
        if (!row.is_fully_masked) total.add(dm(row, place));
      });
      dbias.store(at, total.total());
    });
  }

  void dsink() const {
    const auto dsink = operands_.output(Op::dsink);
    for_each(dsink.dims(), [&](const Index& at) {
      Accumulator<Scalar> total;
      for (std::int64_t b = 0; b < d_o_.dims()[0]; ++b)
        for (std::int64_t i = 0; i < d_o_.dims()[2]; ++i) {
          const Row row = this->row(b, at[1], i);
          if (!row.is_fully_masked)
            total.add(softmax_weight(problem_.sink()->load(at), row.stats) * -row.delta);
        }
      dsink.store(at, total.total());
    });
  }

  void amax_dp() const {
    SharedMaximum<Scalar> amax;
    const Dims scores = problem_.scores();
    for_each({scores[0], scores[1], scores[2]}, [&](const Index& at) {
      const Row row = this->row(at[0], at[1], at[2]);
      if (row.is_fully_masked) return;
      Scalar largest(0.0);
      problem_.for_each_visible(at[0], at[1], at[2], [&](const ScoreIndex& place) {
        largest = maximum(largest, absolute(problem_.scale() * ds(row, place)));
      });
      amax.add(largest);
    });
    store_amax(Op::amax_dp, amax);
  }

  void dump_rng() const { problem_.dump_rng(); }

 private:
  const Op& op_;
  AttentionProblem<Op, Operands> problem_;
  const Operands& operands_;
  View o_, d_o_, stats_;
  ScoreProgram derived_;  // empty if score_modifier_gradient is given
};

}  // namespace

template <class Operands>
void evaluate(const AttentionBackward& op, const Operands& operands) {
  using Op = AttentionBackward;
  const Backward<Operands> backward(op, operands);
  if (operands.has_output(Op::dq) || operands.has_output(Op::amax_dq)) backward.dq();
  if (operands.has_output(Op::dk) || operands.has_output(Op::amax_dk)) backward.dk();
  if (operands.has_output(Op::dv) || operands.has_output(Op::amax_dv)) backward.dv();
  if (operands.has_output(Op::dbias)) backward.dbias();
  if (operands.has_output(Op::dsink)) backward.dsink();
  if (operands.has_output(Op::amax_dp)) backward.amax_dp();
  backward.dump_rng();
}

ASHLAR_REFERENCE(AttentionBackward);

}  // namespace ashlar::reference
