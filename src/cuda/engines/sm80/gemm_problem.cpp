#include "cuda/engines/sm80/gemm_problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/sm80/implicit_gemm.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::size_t kMaxVariants = 1024;

GemmProblem matmul_problem(const Region& region, const Matmul& op) {
  const Anchor& anchor = *region.anchor;
  const Dims& c = anchor.outputs[Matmul::c].dims;
  const int rank = c.rank();
  GemmProblem problem;
  for (int axis = 0; axis < rank - 2; ++axis) problem.sub_indices[0].push_back({c[axis]});
  const Dims& a = anchor.inputs[Matmul::a].dims;
  problem.sub_indices[1] = {{c[rank - 2]}};
  problem.sub_indices[2] = {{c[rank - 1]}};
  problem.sub_indices[3] = {{a[a.rank() - 1]}};
  const auto operand = [&](const PointwiseProgram& program, const Dims& dims, GemmDim row,
                           GemmDim column, DType dtype, int slot) {
    ProblemOperand result{program, {}, dtype, slot};
    const int absent = rank - dims.rank();  // leading axes
    for (int axis = 0; axis < dims.rank() - 2; ++axis) {
      Coordinate coordinate{{0}, {}};
      if (dims[axis] > 1) coordinate.terms.push_back({GemmDim::batch, axis + absent, {1}});
      result.coordinates.push_back(coordinate);
    }
    result.coordinates.push_back({{0}, {{row, 0, {1}}}});
    result.coordinates.push_back({{0}, {{column, 0, {1}}}});
    return result;
  };
  problem.a = operand(input_program(region, Matmul::a), a, GemmDim::m, GemmDim::k,
                      anchor.inputs[Matmul::a].dtype, Matmul::a);
  problem.b = operand(input_program(region, Matmul::b), anchor.inputs[Matmul::b].dims, GemmDim::k,
                      GemmDim::n, anchor.inputs[Matmul::b].dtype, Matmul::b);
  problem.d =
      operand(region.epilogue, c, GemmDim::m, GemmDim::n, anchor.outputs[Matmul::c].dtype, -1);
  const auto length = [&](int slot) {
    const PointwiseProgram& program = input_program(region, slot);
    return program.empty() ? View{} : program.steps[0].view;
  };
  problem.m_override = length(Matmul::m_override);
  problem.n_override = length(Matmul::n_override);
  problem.k_override = length(Matmul::k_override);
  problem.row_axis = rank - 2;
  problem.column_axis = rank - 1;
  problem.padding_value = op.padding_value;
  return problem;
}

// The axis of D that the last sub-index of n drives, if n drives the axis with the smallest stride;
// otherwise that axis itself.
int last_axis(const GemmProblem& problem) {
  const int fast = fast_axis(problem.d.program);
  const std::vector<PerVariant>& columns = problem.of(GemmDim::n);
  const auto is_one = [&](int sub_index) {
    return columns[static_cast<std::size_t>(sub_index)] == PerVariant(problem.variants, 1);
  };
  int last = static_cast<int>(columns.size()) - 1;
  while (last > 0 && is_one(last)) --last;
  bool is_of_columns = false;
  int result = fast;
  for (int axis = 0; axis < problem.d.program.space.rank(); ++axis)
    for (const IndexTerm& term : problem.d.coordinates[static_cast<std::size_t>(axis)].terms) {
      if (term.dim != GemmDim::n || is_one(term.sub_index)) continue;
      if (axis == fast) is_of_columns = true;
      if (term.sub_index == last) result = axis;
    }
  return is_of_columns ? result : fast;
}

// Whether n runs along the last axis of D.
bool columns_come_last(const GemmProblem& problem) {
  for (const IndexTerm& term : problem.d.coordinates.back().terms) {
    if (term.dim == GemmDim::m && problem.extent(GemmDim::m) > 1) return false;
    if (term.dim == GemmDim::n) return true;
  }
  return true;
}

}  // namespace

std::int64_t GemmProblem::extent(GemmDim dim, std::size_t variant) const {
  std::int64_t result = 1;
  for (const PerVariant& sub_index : of(dim)) result *= sub_index[variant];
  return result;
}

std::int64_t GemmProblem::results() const {
  std::int64_t result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant)
    result +=
        extent(GemmDim::m, variant) * extent(GemmDim::n, variant) * extent(GemmDim::batch, variant);
  return result;
}

double GemmProblem::multiply_adds() const {
  double result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant) {
    double one = 1;
    for (const GemmDim dim : {GemmDim::batch, GemmDim::m, GemmDim::n, GemmDim::k})
      one *= static_cast<double>(extent(dim, variant));
    result += one;
  }
  return result;
}

void GemmProblem::transpose() {
  std::swap(a, b);
  std::swap(sub_indices[static_cast<std::size_t>(GemmDim::m)],
            sub_indices[static_cast<std::size_t>(GemmDim::n)]);
  for (ProblemOperand* operand : {&a, &b, &d})
    for (Coordinate& coordinate : operand->coordinates)
      for (IndexTerm& term : coordinate.terms)
        if (term.dim == GemmDim::m || term.dim == GemmDim::n)
          term.dim = term.dim == GemmDim::m ? GemmDim::n : GemmDim::m;
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

void move_axis_last(ProblemOperand& operand, int axis) {
  move_axis_last(operand.program, axis);
  const auto at = operand.coordinates.begin() + axis;
  std::rotate(at, at + 1, operand.coordinates.end());
}

void GemmProblem::move_result_axis_last(int axis) {
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

Support is_gemm_problem(const Region& region) {
  if (!region.anchor_as<Matmul>() && !region.anchor_as<ConvForward>() &&
      !region.anchor_as<ConvBackwardData>() && !region.anchor_as<ConvBackwardFilter>())
    return Support::other_operation("the anchor is neither matmul nor convolution");
  if (const auto* op = region.anchor_as<ConvBackwardData>()) {
    std::size_t variants = 1;  // at most
    for (const std::int64_t stride : op->stride) variants *= static_cast<std::size_t>(stride);
    if (variants > kMaxVariants)
      return Support::no("{} residues modulo the strides, at most 1024", variants);
  }
  return Support::yes();
}

GemmProblem gemm_problem(const Region& region) {
  const auto* matmul = region.anchor_as<Matmul>();
  GemmProblem problem = matmul != nullptr ? matmul_problem(region, *matmul) : implicit_gemm(region);
  problem.move_result_axis_last(last_axis(problem));
  if (!columns_come_last(problem)) problem.transpose();
  return problem;
}

}  // namespace ashlar::cuda
