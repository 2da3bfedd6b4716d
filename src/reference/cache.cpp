// Paged cache load, and expansion and contraction of band matrices.
#include "reference/evaluate.hpp"
#include "reference/untrusted_integer.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const PagedCacheLoad& op, const Operands& operands) {
  using Op = PagedCacheLoad;
  using Scalar = typename Operands::Scalar;
  const auto container = operands.input(Op::container);
  const auto table = operands.input(Op::page_table);
  const auto y = operands.output(Op::y);
  const std::int64_t pages = container.dims()[0], block = container.dims()[2];
  const int time = op.transposed ? 3 : 2;

  for_each(y.dims(), [&](const Index& at) {
    const std::int64_t b = at[0], s = at[time], extent = y.dims()[time];
    const std::int64_t length =
        operands.has_input(Op::sequence)
            ? integer_within(operands.input(Op::sequence), {b, 0, 0, 0}, 0, extent)
            : extent;
    const std::int64_t page = s < length ? position_within(table, {b, 0, s / block, 0}, pages) : -1;
    y.store(at, page < 0 ? Scalar(0.0)
                         : container.load({page, at[1], s % block, at[op.transposed ? 2 : 3]}));
  });
}

namespace {

// The matrix column stored in band column 0 of row i.
template <class Op, class Operands>
std::int64_t first_column(const Op& op, const Operands& operands, const Index& at, int row_axis,
                          std::int64_t columns) {
  std::int64_t shift = 0;
  if (operands.has_input(Op::kv_token_offset)) {
    // Clamp the offset: beyond this the band lies outside the matrix.
    const std::int64_t reach =
        operands.input(Op::x).dims()[row_axis] + columns + op.lower_bandwidth + op.upper_bandwidth;
    Index batch = Dims::filled(at.rank(), 0);
    if (row_axis > 0) batch[0] = at[0];
    shift = integer_within(operands.input(Op::kv_token_offset), batch, -reach, reach);
  }
  return at[row_axis] - op.lower_bandwidth + shift;
}

template <class Op>
int band_axis(const Op& op, const Dims& dims) {
  return static_cast<int>(op.axis < 0 ? op.axis + dims.rank() : op.axis);
}

}  // namespace

template <class Operands>
void evaluate(const ExpandBandMatrix& op, const Operands& operands) {
  using Op = ExpandBandMatrix;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x);
  const auto y = operands.output(Op::y);
  const int axis = band_axis(op, y.dims());
  for_each(y.dims(), [&](const Index& at) {
    Index from = at;
    from[axis] -= first_column(op, operands, at, axis - 1, y.dims()[axis]);
    const bool inside = from[axis] >= 0 && from[axis] <= op.lower_bandwidth + op.upper_bandwidth;
    y.store(at, inside ? x.load(from) : Scalar(op.pad_value));
  });
}

template <class Operands>
void evaluate(const ContractBandMatrix& op, const Operands& operands) {
  using Op = ContractBandMatrix;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x);
  const auto y = operands.output(Op::y);
  const int axis = band_axis(op, y.dims());
  for_each(y.dims(), [&](const Index& at) {
    Index from = at;
    from[axis] += first_column(op, operands, at, axis - 1, x.dims()[axis]);
    const bool inside = from[axis] >= 0 && from[axis] < x.dims()[axis];
    y.store(at, inside ? x.load(from) : Scalar(op.pad_value));
  });
}

ASHLAR_REFERENCE(PagedCacheLoad);
ASHLAR_REFERENCE(ExpandBandMatrix);
ASHLAR_REFERENCE(ContractBandMatrix);

}  // namespace ashlar::reference
