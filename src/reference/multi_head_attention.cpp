#include "reference/multi_head_attention.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const MultiHeadAttentionForward& op, const Operands& operands) {
  using Op = MultiHeadAttentionForward;
  using Scalar = typename Operands::Scalar;
  using Problem = MultiHeadProblem<Op, Operands>;
  const Problem problem(op, operands);
  const MultiHeadShape& shape = problem.shape();
  const MultiHeadProjection& projection = shape[MultiHeadPart::output];
  const auto o = operands.output(Op::o);
  // What the output projection made, on its way out.
  const auto finish = [&](const Index& at, Scalar x) {
    x = problem.post_kept(at, x);
    o.store(at, operands.has_input(Op::residual) ? x + operands.input(Op::residual).load(at) : x);
  };

  for_each({shape.batch, shape.beams, shape.queries}, [&](const Index& row) {
    const std::int64_t b = row[0], beam = row[1], i = row[2];
    if (problem.is_padding(b, beam, i)) {
      for (std::int64_t c = 0; c < shape.o_size; ++c) o.store({b, beam, i, c}, Scalar(0.0));
      return;
    }
    // Without a projection, heads follow each other; with one, every head adds to every element.
    for_each_head_block(projection.present ? shape.o_size : 1, [&](std::int64_t first_c,
                                                                   std::int64_t count_c) {
      std::array<Accumulator<Scalar>, kHeadBlock> totals;
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        const HeadRow query{b, beam, head, i};
        const RowSum<Scalar> sum = problem.row_sum(query);
        for_each_head_block(shape.value_size, [&](std::int64_t first, std::int64_t count) {
          const auto block = problem.head_output(query, sum, first, count);
          for (std::int64_t p = 0; p < count; ++p) {
            const std::int64_t column = head * shape.value_size + first + p;
            const Scalar value = Problem::at(block.values, p);
            if (!projection.present) {
              finish({b, beam, i, column}, value);
              continue;
            }
            for (std::int64_t c = 0; c < count_c; ++c)
              Problem::at(totals, c).add(
                  problem.weight(projection.matrix + (first_c + c) * projection.columns + column) *
                  value);
          }
        });
      }
      for (std::int64_t c = 0; projection.present && c < count_c; ++c) {
        const Scalar total = Problem::at(totals, c).total();
        finish({b, beam, i, first_c + c},
               shape.has_biases ? total + problem.weight(projection.bias + first_c + c) : total);
      }
    });
  });
}

ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionForward);

}  // namespace ashlar::reference
