// MoE grouped matmul: row r of group g is token[r] weight[g % experts].
#include "reference/evaluate.hpp"
#include "reference/mma_rounding.hpp"
#include "reference/untrusted_integer.hpp"

namespace ashlar::reference {

namespace {

// The routing of rows: expert, source row and destination row.
template <class Op, class Operands>
class Routing {
 public:
  Routing(const Op& op, const Operands& operands, std::int64_t experts, std::int64_t output_rows)
      : op_(op),
        operands_(operands),
        offsets_(operands.input(Op::first_token_offset)),
        tokens_(operands.input(Op::token).dims()[1]),
        experts_(experts),
        output_rows_(output_rows),
        rows_(op.mode == MoeMode::gather ? operands.input(Op::token_index).dims()[1] : tokens_) {}

  std::int64_t rows() const { return rows_; }

  // Calls body(expert, begin, end) for every group. Offsets are clamped to [0, rows] and made
  // non-decreasing.
  template <class Body>
  void for_each_group(const Body& body) const {
    const std::int64_t groups = offsets_.dims()[0];
    std::int64_t begin = groups > 0 ? integer_within(offsets_, {0, 0, 0}, 0, rows_) : 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t end =
          g + 1 < groups ? integer_within(offsets_, {g + 1, 0, 0}, begin, rows_) : rows_;
      body(g % experts_, begin, end);
      begin = end;
    }
  }
  // -1: not routed to any expert.
  std::int64_t expert_of(std::int64_t row) const {
    std::int64_t found = -1;
    for_each_group([&](std::int64_t expert, std::int64_t begin, std::int64_t end) {
      if (begin <= row && row < end) found = expert;
    });
    return found;
  }
  // The row of token that row r reads. -1: zeros.
  std::int64_t source(std::int64_t row) const {
    if (op_.mode != MoeMode::gather) return row;
    return position_within(operands_.input(Op::token_index), {0, row, 0}, tokens_);
  }
  // The row of output that row r is written to. -1: none.
  std::int64_t destination(std::int64_t row) const {
    if (op_.mode != MoeMode::scatter) return row;
    const std::int64_t token =
        position_within(operands_.input(Op::token_index), {0, row, 0}, output_rows_);
    const std::int64_t rank =
        position_within(operands_.input(Op::token_ks), {0, row, 0}, op_.top_k);
    if (token < 0 || rank < 0 || rank >= output_rows_) return -1;
    // token * top_k + rank < output_rows, without overflow.
    if (token > (output_rows_ - 1 - rank) / op_.top_k) return -1;
    return token * op_.top_k + rank;
  }

 private:
  const Op& op_;
  const Operands& operands_;
  typename Operands::View offsets_;
  std::int64_t tokens_, experts_, output_rows_, rows_;
};

}  // namespace

template <class Operands>
void evaluate(const MoeGroupedMatmul& op, const Operands& operands) {
  using Op = MoeGroupedMatmul;
  using Scalar = typename Operands::Scalar;
  const auto token = operands.input(Op::token);
  const auto weight = operands.input(Op::weight);
  const auto output = operands.output(Op::output);
  const Routing<Op, Operands> routing(op, operands, weight.dims()[0], output.dims()[1]);
  const std::int64_t depth = token.dims()[2], columns = output.dims()[2];
  const MmaRounding<Scalar> product(operands, token.dtype(), weight.dtype());

  parallel_for(output.dims()[1], [&](std::int64_t m) {
    // Without scatter only row m is written to output row m.
    const bool scatter = op.mode == MoeMode::scatter;
    const std::int64_t first = scatter ? 0 : m, last = scatter ? routing.rows() : m + 1;
    for (std::int64_t n = 0; n < columns; ++n) {
      Accumulator<Scalar> sum;
      for (std::int64_t r = first; r < last; ++r) {
        if (routing.destination(r) != m) continue;
        const std::int64_t source = routing.source(r), expert = routing.expert_of(r);
        if (source < 0 || expert < 0) continue;
        add_dot_product(product, token.line({0, source, 0}, 2), weight.line({expert, 0, n}, 1),
                        depth, sum);
      }
      output.store({0, m, n}, product.total(sum));
    }
  });
}

// dweight[e] = sum over the rows r of e of token[r]^T doutput[r];  dtoken[r] = doutput[r] weight^T
template <class Operands>
void evaluate(const MoeGroupedMatmulBackward& op, const Operands& operands) {
  using Op = MoeGroupedMatmulBackward;
  using Scalar = typename Operands::Scalar;
  const auto doutput = operands.input(Op::doutput);
  const auto token = operands.input(Op::token);
  const std::int64_t experts = operands.has_input(Op::weight)
                                   ? operands.input(Op::weight).dims()[0]
                                   : operands.input(Op::first_token_offset).dims()[0];
  const Routing<Op, Operands> routing(op, operands, experts, doutput.dims()[1]);

  if (operands.has_output(Op::dweight)) {
    const auto dweight = operands.output(Op::dweight);
    const MmaRounding<Scalar> product(operands, token.dtype(), doutput.dtype());
    for_each(dweight.dims(), [&](const Index& at) {
      Accumulator<Scalar> sum;
      routing.for_each_group([&](std::int64_t expert, std::int64_t begin, std::int64_t end) {
        if (expert != at[0]) return;
        for (std::int64_t r = begin; r < end; ++r) {
          const std::int64_t from = routing.source(r), to = routing.destination(r);
          if (from >= 0 && to >= 0)
            sum.add(product.term(token.load({0, from, at[1]}), doutput.load({0, to, at[2]})));
        }
      });
      dweight.store(at, product.total(sum));
    });
  }
  if (!operands.has_output(Op::dtoken)) return;
  const auto weight = operands.input(Op::weight);
  const auto dtoken = operands.output(Op::dtoken);
  const bool gather = op.mode == MoeMode::gather;
  const MmaRounding<Scalar> product(operands, doutput.dtype(), weight.dtype());
  for_each(dtoken.dims(), [&](const Index& at) {
    Accumulator<Scalar> sum;
    const std::int64_t first = gather ? 0 : at[1], last = gather ? routing.rows() : at[1] + 1;
    for (std::int64_t r = first; r < last; ++r) {
      if (routing.source(r) != at[1]) continue;
      const std::int64_t to = routing.destination(r), expert = routing.expert_of(r);
      if (to < 0 || expert < 0) continue;
      add_dot_product(product, doutput.line({0, to, 0}, 2), weight.line({expert, at[2], 0}, 2),
                      doutput.dims()[2], sum);
    }
    dtoken.store(at, product.total(sum));
  });
}

ASHLAR_REFERENCE(MoeGroupedMatmul);
ASHLAR_REFERENCE(MoeGroupedMatmulBackward);

}  // namespace ashlar::reference
