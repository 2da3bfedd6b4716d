// Gradients of multi-head attention. With do'_i = keep_i do_i, the gradient before post dropout:
//   do_hi = Wo_h^T do'_i                       (its part of do'_i without a projection)
//   dp_ij = keep_ij sum_p do_hip v^_jp, delta_i = sum_p do_hip o_hip, ds_ij = p_ij (dp_ij -
//   delta_i) dq^_i = scale sum_j ds_ij k^_j, dk^_j = scale sum_i ds_ij q^_i, dv^_j = sum_i keep_ij
//   p_ij do_hi dq_i = sum_h Wq_h^T dq^_hi, dWq_h = sum_i dq^_hi q_i^T, dbq_h = sum_i dq^_hi; k and
//   v alike dWo = sum_i do'_i [o_1i, ..., o_Hi]^T, dbo = sum_i do'_i
// Keys that serve several beams sum over all of them.
#include "reference/multi_head_attention.hpp"

namespace ashlar::reference {

namespace {

template <class Op, class Operands>
class MultiHeadGradients : public MultiHeadProblem<Op, Operands> {
 public:
  using Base = MultiHeadProblem<Op, Operands>;
  using Scalar = typename Operands::Scalar;
  using Block = HeadBlock<Scalar>;
  using Totals = std::array<Accumulator<Scalar>, kHeadBlock>;
  using Base::at, Base::shape, Base::projected, Base::columns, Base::key_row, Base::kept,
      Base::rounded, Base::scale, Base::head_output;

  MultiHeadGradients(const Op& op, const Operands& operands)
      : Base(op, operands), d_o_(operands.input(Op::d_o)) {}

  // Element c of do'_i.
  Scalar output_gradient(std::int64_t b, std::int64_t beam, std::int64_t i, std::int64_t c) const {
    if (this->is_padding(b, beam, i)) return Scalar(0.0);
    return this->post_kept({b, beam, i, c}, d_o_.load({b, beam, i, c}));
  }
  // Element p of do_hi.
  Scalar head_gradient(const HeadRow& query, std::int64_t p) const {
    const MultiHeadProjection& projection = shape()[MultiHeadPart::output];
    const std::int64_t column = query.head * shape().value_size + p;
    if (!projection.present) return output_gradient(query.b, query.beam, query.row, column);
    Accumulator<Scalar> sum;
    for (std::int64_t c = 0; c < projection.rows; ++c)
      sum.add(this->weight(projection.matrix + c * projection.columns + column) *
              output_gradient(query.b, query.beam, query.row, c));
    return sum.total();
  }

  // What a query step's gradients need besides q, k and v.
  struct Row {
    HeadRow at;
    Columns columns;
    Scalar stats, delta;
  };
  Row row(const HeadRow& query) const {
    const RowSum<Scalar> sum = this->row_sum(query);
    Row row{query, sum.sees_nothing() ? Columns{} : columns(query.b, query.beam, query.row),
            sum.stats(), Scalar(0.0)};
    Accumulator<Scalar> delta;
    for_each_head_block(shape().value_size, [&](std::int64_t first, std::int64_t count) {
      const Block o = head_output(query, sum, first, count);
      for (std::int64_t p = 0; p < count; ++p)
        delta.add(head_gradient(query, first + p) * at(o.values, p));
    });
    row.delta = delta.total();
    return row;
  }
  Scalar weight_of(const Row& row, std::int64_t j) const {
    return softmax_weight(this->score(row.at, j), row.stats);
  }
  Scalar ds(const Row& row, std::int64_t j) const {
    Accumulator<Scalar> dp;
    for (std::int64_t p = 0; p < shape().value_size; ++p)
      dp.add(head_gradient(row.at, p) * projected(MultiHeadPart::value, key_row(row.at, j), p));
    return weight_of(row, j) * (kept(row.at, j, dp.total()) - row.delta);
  }

  // Elements of dq^, dk^ or dv^.
  Block projected_gradient(MultiHeadPart part, const HeadRow& place, std::int64_t first,
                           std::int64_t count) const {
    Totals totals;
    const auto add = [&](Scalar factor, const auto& element) {
      for (std::int64_t p = 0; p < count; ++p) at(totals, p).add(factor * element(first + p));
    };
    if (part == MultiHeadPart::query) {
      const Row row = this->row(place);
      for (std::int64_t j = row.columns.begin; j < row.columns.end; ++j)
        add(rounded(ds(row, j)),
            [&](std::int64_t p) { return projected(MultiHeadPart::key, key_row(place, j), p); });
    } else {
      for_each_query_of(place, [&](const Row& row) {
        if (part == MultiHeadPart::key)
          add(rounded(ds(row, place.row)),
              [&](std::int64_t p) { return projected(MultiHeadPart::query, row.at, p); });
        else
          add(rounded(kept(row.at, place.row, weight_of(row, place.row))),
              [&](std::int64_t p) { return head_gradient(row.at, p); });
      });
    }
    Block block{first, count};
    for (std::int64_t p = 0; p < count; ++p) {
      const Scalar total = at(totals, p).total();
      at(block.values, p) = part == MultiHeadPart::value ? total : scale() * total;
    }
    return block;
  }

 private:
  // Calls body(row) for the query steps that see a key.
  template <class Body>
  void for_each_query_of(const HeadRow& key, const Body& body) const {
    for (std::int64_t beam = 0; beam < shape().beams; ++beam) {
      if (shape().key_beam(beam) != key.beam) continue;
      for (std::int64_t i = 0; i < shape().queries; ++i) {
        if (!columns(key.b, beam, i).contains(key.row)) continue;
        const Row row = this->row({key.b, beam, key.head, i});
        if (row.columns.contains(key.row)) body(row);
      }
    }
  }

  typename Operands::View d_o_;
};

// dq, dk or dv: every head's share, projected back.
template <class Gradients, class View>
void back_to_source(const Gradients& gradients, MultiHeadPart part, const View& result) {
  using Scalar = typename Gradients::Scalar;
  const MultiHeadShape& shape = gradients.shape();
  const MultiHeadProjection& projection = shape[part];
  const Dims& dims = result.dims();
  for_each({dims[0], dims[1], dims[2]}, [&](const Index& row) {
    for_each_head_block(dims[3], [&](std::int64_t first_c, std::int64_t count_c) {
      typename Gradients::Totals totals;
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        const HeadRow place{row[0], row[1], head, row[2]};
        if (!projection.present) {
          const auto block = gradients.projected_gradient(part, place, first_c, count_c);
          for (std::int64_t c = 0; c < count_c; ++c)
            Gradients::at(totals, c).add(Gradients::at(block.values, c));
          continue;
        }
        const std::int64_t size = gradients.head_size(part);
        for_each_head_block(size, [&](std::int64_t first, std::int64_t count) {
          const auto block = gradients.projected_gradient(part, place, first, count);
          for (std::int64_t p = 0; p < count; ++p)
            for (std::int64_t c = 0; c < count_c; ++c) {
              const std::int64_t weight =
                  projection.matrix + (head * size + first + p) * projection.columns + first_c + c;
              Gradients::at(totals, c).add(gradients.weight(weight) *
                                           Gradients::at(block.values, p));
            }
        });
      }
      for (std::int64_t c = 0; c < count_c; ++c)
        result.store({row[0], row[1], row[2], first_c + c},
                     Scalar(Gradients::at(totals, c).total()));
    });
  });
}

// Rows [row, row + rows) and columns [column, column + columns) of a weight matrix, and the biases
// of the rows: small enough for the stack.
constexpr std::int64_t kTileRows = 8;

template <class Gradients>
struct WeightTile {
  using Scalar = typename Gradients::Scalar;
  std::int64_t row, rows, column, columns;
  std::array<typename Gradients::Totals, kTileRows> matrix = {};
  std::array<Accumulator<Scalar>, kTileRows> bias = {};

  // One step's product: left(r) * right(c).
  template <class Left, class Right>
  void add(const Left& left, const Right& right) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const Scalar factor = left(r);
      Gradients::at(bias, r).add(factor);
      for (std::int64_t c = 0; c < columns; ++c)
        Gradients::at(Gradients::at(matrix, r), c).add(factor * right(c));
    }
  }
};

// Calls fill(tile) for every tile of a projection's matrix and stores what it adds up to. No tile
// spans two heads, neither in its rows (of `rows` per head) nor in its columns.
template <class Gradients, class Store, class Fill>
void for_each_tile(const Gradients& gradients, MultiHeadPart part, std::int64_t rows_per_head,
                   std::int64_t columns_per_head, const Store& store, const Fill& fill) {
  const MultiHeadShape& shape = gradients.shape();
  const MultiHeadProjection& projection = shape[part];
  const std::int64_t tiles = (rows_per_head + kTileRows - 1) / kTileRows;
  for_each({projection.rows / rows_per_head, tiles}, [&](const Index& where) {
    const std::int64_t first = where[1] * kTileRows;
    const std::int64_t row = where[0] * rows_per_head + first;
    const std::int64_t rows = std::min(kTileRows, rows_per_head - first);
    for (std::int64_t head = 0; head < projection.columns / columns_per_head; ++head)
      for_each_head_block(columns_per_head, [&](std::int64_t offset, std::int64_t columns) {
        WeightTile<Gradients> tile{row, rows, head * columns_per_head + offset, columns};
        fill(tile);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c)
            store(projection.matrix + (row + r) * projection.columns + tile.column + c,
                  Gradients::at(Gradients::at(tile.matrix, r), c).total());
          if (shape.has_biases && tile.column == 0)
            store(projection.bias + row + r, Gradients::at(tile.bias, r).total());
        }
      });
  });
}

// Wq, Wk or Wv: rows are elements of heads, columns elements of the vectors as given.
template <class Gradients, class Store>
void source_weights(const Gradients& gradients, MultiHeadPart part, const Store& store) {
  const auto& x = gradients.source(part);
  const Dims steps = {x.dims()[0], x.dims()[1], x.dims()[2]};
  const std::int64_t size = gradients.head_size(part);
  for_each_tile(gradients, part, size, x.dims()[3], store, [&](auto& tile) {
    for_each_in(Box::all(steps), [&](const Index& at) {
      // Vectors past the lengths have no gradient, and may hold anything.
      const std::int64_t length = part == MultiHeadPart::query
                                      ? gradients.query_length(at[0], at[1])
                                      : gradients.key_length(at[0], at[1]);
      if (at[2] >= length) return;
      const auto block = gradients.projected_gradient(part, {at[0], at[1], tile.row / size, at[2]},
                                                      tile.row % size, tile.rows);
      tile.add([&](std::int64_t r) { return Gradients::at(block.values, r); },
               [&](std::int64_t c) {
                 return x.load({at[0], at[1], at[2], tile.column + c});
               });
    });
  });
}

// Wo: rows are elements of o, columns elements of heads.
template <class Gradients, class Store>
void output_weights(const Gradients& gradients, const Store& store) {
  const MultiHeadShape& shape = gradients.shape();
  const std::int64_t size = shape.value_size;
  for_each_tile(gradients, MultiHeadPart::output, shape.o_size, size, store, [&](auto& tile) {
    for_each_in(Box::all({shape.batch, shape.beams, shape.queries}), [&](const Index& at) {
      if (gradients.is_padding(at[0], at[1], at[2])) return;
      const HeadRow query{at[0], at[1], tile.column / size, at[2]};
      const auto block =
          gradients.head_output(query, gradients.row_sum(query), tile.column % size, tile.columns);
      tile.add(
          [&](std::int64_t r) {
            return gradients.output_gradient(at[0], at[1], at[2], tile.row + r);
          },
          [&](std::int64_t c) { return Gradients::at(block.values, c); });
    });
  });
}

}  // namespace

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardData& op, const Operands& operands) {
  using Op = MultiHeadAttentionBackwardData;
  const MultiHeadGradients<Op, Operands> gradients(op, operands);
  back_to_source(gradients, MultiHeadPart::query, operands.output(Op::dq));
  back_to_source(gradients, MultiHeadPart::key, operands.output(Op::dk));
  back_to_source(gradients, MultiHeadPart::value, operands.output(Op::dv));
}

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardWeights& op, const Operands& operands) {
  using Op = MultiHeadAttentionBackwardWeights;
  using Scalar = typename Operands::Scalar;
  const MultiHeadGradients<Op, Operands> gradients(op, operands);
  const auto dweights = operands.output(Op::dweights);
  const auto store = [&](std::int64_t element, Scalar gradient) {
    dweights.store({element}, operands.has_input(Op::previous)
                                  ? gradient + operands.input(Op::previous).load({element})
                                  : gradient);
  };
  for (MultiHeadPart part : {MultiHeadPart::query, MultiHeadPart::key, MultiHeadPart::value})
    if (gradients.shape()[part].present) source_weights(gradients, part, store);
  if (gradients.shape()[MultiHeadPart::output].present) output_weights(gradients, store);
}

ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionBackwardData);
ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionBackwardWeights);

}  // namespace ashlar::reference
