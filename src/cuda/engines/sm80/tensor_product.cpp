#include "cuda/engines/sm80/tensor_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/sm80/convolution_product.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::size_t kMostVariants = 1024;

TensorProduct matrix_product(const Region& region, const Matmul& op) {
  const Anchor& anchor = *region.anchor;
  const Dims& c = anchor.outputs[Matmul::c].dims;
  const int rank = c.rank();
  TensorProduct product;
  for (int axis = 0; axis < rank - 2; ++axis) product.digits[0].push_back({c[axis]});
  const Dims& a = anchor.inputs[Matmul::a].dims;
  product.digits[1] = {{c[rank - 2]}};
  product.digits[2] = {{c[rank - 1]}};
  product.digits[3] = {{a[a.rank() - 1]}};
  const auto operand = [&](const PointwiseProgram& program, const Dims& dims, Group row,
                           Group column, DType dtype, int slot) {
    ProductOperand result{program, {}, dtype, slot};
    const int absent = rank - dims.rank();  // leading axes
    for (int axis = 0; axis < dims.rank() - 2; ++axis) {
      Coordinate coordinate{{0}, {}};
      if (dims[axis] > 1) coordinate.terms.push_back({Group::batch, axis + absent, {1}});
      result.coordinates.push_back(coordinate);
    }
    result.coordinates.push_back({{0}, {{row, 0, {1}}}});
    result.coordinates.push_back({{0}, {{column, 0, {1}}}});
    return result;
  };
  product.a = operand(input_program(region, Matmul::a), a, Group::m, Group::k,
                      anchor.inputs[Matmul::a].dtype, Matmul::a);
  product.b = operand(input_program(region, Matmul::b), anchor.inputs[Matmul::b].dims, Group::k,
                      Group::n, anchor.inputs[Matmul::b].dtype, Matmul::b);
  product.d = operand(region.epilogue, c, Group::m, Group::n, anchor.outputs[Matmul::c].dtype, -1);
  const auto length = [&](int slot) {
    const PointwiseProgram& program = input_program(region, slot);
    return program.empty() ? View{} : program.steps[0].view;
  };
  product.m_override = length(Matmul::m_override);
  product.n_override = length(Matmul::n_override);
  product.k_override = length(Matmul::k_override);
  product.row_axis = rank - 2;
  product.column_axis = rank - 1;
  product.padding_value = op.padding_value;
  return product;
}

// The axis of D that the last digit of columns runs along, where they run along the one that memory
// has fastest, which else is it.
int last_axis(const TensorProduct& product) {
  const int fast = fast_axis(product.d.program);
  const std::vector<Numbers>& columns = product.of(Group::n);
  const auto is_one = [&](int digit) {
    return columns[static_cast<std::size_t>(digit)] == Numbers(product.variants, 1);
  };
  int last = static_cast<int>(columns.size()) - 1;
  while (last > 0 && is_one(last)) --last;
  bool is_of_columns = false;
  int result = fast;
  for (int axis = 0; axis < product.d.program.space.rank(); ++axis)
    for (const DigitTerm& term : product.d.coordinates[static_cast<std::size_t>(axis)].terms) {
      if (term.group != Group::n || is_one(term.digit)) continue;
      if (axis == fast) is_of_columns = true;
      if (term.digit == last) result = axis;
    }
  return is_of_columns ? result : fast;
}

// Whether columns run along D's last axis.
bool columns_come_last(const TensorProduct& product) {
  for (const DigitTerm& term : product.d.coordinates.back().terms) {
    if (term.group == Group::m && product.extent(Group::m) > 1) return false;
    if (term.group == Group::n) return true;
  }
  return true;
}

}  // namespace

std::int64_t TensorProduct::extent(Group group, std::size_t variant) const {
  std::int64_t result = 1;
  for (const Numbers& digit : of(group)) result *= digit[variant];
  return result;
}

std::int64_t TensorProduct::results() const {
  std::int64_t result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant)
    result += extent(Group::m, variant) * extent(Group::n, variant) * extent(Group::batch, variant);
  return result;
}

double TensorProduct::multiply_adds() const {
  double result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant) {
    double one = 1;
    for (const Group group : {Group::batch, Group::m, Group::n, Group::k})
      one *= static_cast<double>(extent(group, variant));
    result += one;
  }
  return result;
}

void TensorProduct::transpose() {
  std::swap(a, b);
  std::swap(digits[static_cast<std::size_t>(Group::m)], digits[static_cast<std::size_t>(Group::n)]);
  for (ProductOperand* operand : {&a, &b, &d})
    for (Coordinate& coordinate : operand->coordinates)
      for (DigitTerm& term : coordinate.terms)
        if (term.group == Group::m || term.group == Group::n)
          term.group = term.group == Group::m ? Group::n : Group::m;
}

int fast_axis(const PointwiseProgram& program) {
  const View* largest = nullptr;
  std::int64_t most = 0;
  const auto look = [&](const View& view) {
    std::int64_t elements = 1;
    for (int axis = 0; axis < program.space.rank(); ++axis)
      if (view.strides[axis] != 0) elements *= program.space[axis];
    if (largest == nullptr || elements > most) {
      largest = &view;
      most = elements;
    }
  };
  for (const auto& store : program.stores) look(store.view);
  if (program.stores.empty())
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) look(step.view);
  int result = program.space.rank() - 1;
  if (largest == nullptr) return result;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int axis = program.space.rank() - 1; axis >= 0; --axis) {
    const std::int64_t stride = std::abs(largest->strides[axis]);
    if (stride == 0 || program.space[axis] == 1 || stride >= least) continue;
    least = stride;
    result = axis;
  }
  return result;
}

void move_axis_last(ProductOperand& operand, int axis) {
  move_axis_last(operand.program, axis);
  const auto at = operand.coordinates.begin() + axis;
  std::rotate(at, at + 1, operand.coordinates.end());
}

void TensorProduct::move_result_axis_last(int axis) {
  const int last = d.program.space.rank() - 1;
  move_axis_last(d, axis);
  const auto moved = [&](const Dims& dims) {
    Dims result;
    for (int i = 0; i <= last; ++i)
      if (i != axis) result.push_back(dims[i]);
    result.push_back(dims[axis]);
    return result;
  };
  for (View* view : {&m_override, &n_override, &k_override})
    if (view->present()) {
      view->dims = moved(view->dims);
      view->strides = moved(view->strides);
    }
  for (int* number : {&row_axis, &column_axis})
    *number = *number == axis ? last : *number - (*number > axis ? 1 : 0);
}

Support is_tensor_product(const Region& region) {
  if (!region.anchor_as<Matmul>() && !region.anchor_as<ConvForward>() &&
      !region.anchor_as<ConvBackwardData>() && !region.anchor_as<ConvBackwardFilter>())
    return Support::other_operation("no matrix product and no convolution");
  if (const auto* op = region.anchor_as<ConvBackwardData>()) {
    std::size_t variants = 1;  // at most
    for (const std::int64_t stride : op->stride) variants *= static_cast<std::size_t>(stride);
    if (variants > kMostVariants) return Support::no("{} residues of the strides", variants);
  }
  return Support::yes();
}

TensorProduct tensor_product(const Region& region) {
  const auto* matmul = region.anchor_as<Matmul>();
  TensorProduct product =
      matmul != nullptr ? matrix_product(region, *matmul) : convolution_product(region);
  product.move_result_axis_last(last_axis(product));
  if (!columns_come_last(product)) product.transpose();
  return product;
}

}  // namespace ashlar::cuda
