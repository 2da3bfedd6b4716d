// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], of real or complex numbers.
#include "reference/evaluate.hpp"
#include "reference/mma_rounding.hpp"

namespace ashlar::reference {

namespace {

// The override of this batch, or the full extent without an override.
template <class Operands>
std::int64_t length(const Operands& operands, int override_input, const Index& index,
                    std::int64_t extent) {
  if (!operands.has_input(override_input)) return extent;
  const auto given = static_cast<std::int64_t>(nominal(operands.input(override_input).load(index)));
  return std::clamp<std::int64_t>(given, 0, extent);
}

// Coordinates with an additional axis for the real or imaginary part.
Index with_part(Index index, std::int64_t part) {
  index.push_back(part);
  return index;
}

template <class Operands>
void evaluate_complex(const Matmul& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto a = operands.input(Matmul::a);
  const auto b = operands.input(Matmul::b);
  const auto c = operands.output(Matmul::c);
  const int part_axis = c.dims().rank() - 1, column_axis = part_axis - 1,
            row_axis = column_axis - 1;
  const std::int64_t depth = a.dims()[column_axis];
  const MmaRounding<Scalar> product(operands, a.dtype(), b.dtype());

  for_each(c.dims(), [&](const Index& index) {
    Index element;
    for (int axis = 0; axis < part_axis; ++axis) element.push_back(index[axis]);
    const bool imaginary = index[part_axis] == 1;
    if (element[row_axis] >= length(operands, Matmul::m_override, element, c.dims()[row_axis]) ||
        element[column_axis] >=
            length(operands, Matmul::n_override, element, c.dims()[column_axis])) {
      c.store(index, Scalar(imaginary ? 0.0 : op.padding_value));
      return;
    }
    Index in_a = element, in_b = element;
    in_a[column_axis] = in_b[row_axis] = 0;
    auto a_real = a.line(with_part(in_a, 0), column_axis);
    auto a_imaginary = a.line(with_part(in_a, 1), column_axis);
    // The part of b that each part of a is multiplied with.
    auto with_real = b.line(with_part(in_b, imaginary ? 1 : 0), row_axis);
    auto with_imaginary = b.line(with_part(in_b, imaginary ? 0 : 1), row_axis);
    Accumulator<Scalar> sum;
    const std::int64_t terms = length(operands, Matmul::k_override, element, depth);
    for (std::int64_t k = 0; k < terms; ++k) {
      sum.add(product.term(a_real[k], with_real[k]));
      const Scalar other = product.term(a_imaginary[k], with_imaginary[k]);
      sum.add(imaginary ? other : -other);
    }
    c.store(index, product.total(sum));
  });
}

}  // namespace

template <class Operands>
void evaluate(const Matmul& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto a = operands.input(Matmul::a);
  const auto b = operands.input(Matmul::b);
  const auto c = operands.output(Matmul::c);
  if (c.complex()) return evaluate_complex(op, operands);
  const int row_axis = c.dims().rank() - 2, column_axis = c.dims().rank() - 1;
  const std::int64_t depth = a.dims()[column_axis];
  const MmaRounding<Scalar> product(operands, a.dtype(), b.dtype());

  for_each(c.dims(), [&](const Index& index) {
    if (index[row_axis] >= length(operands, Matmul::m_override, index, c.dims()[row_axis]) ||
        index[column_axis] >= length(operands, Matmul::n_override, index, c.dims()[column_axis])) {
      c.store(index, Scalar(op.padding_value));
      return;
    }
    Index in_a = index, in_b = index;
    in_a[column_axis] = in_b[row_axis] = 0;
    Accumulator<Scalar> sum;
    const std::int64_t terms = length(operands, Matmul::k_override, index, depth);
    add_dot_product(product, a.line(in_a, column_axis), b.line(in_b, row_axis), terms, sum);
    c.store(index, product.total(sum));
  });
}

ASHLAR_REFERENCE(Matmul);

}  // namespace ashlar::reference
