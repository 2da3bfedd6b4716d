#include "cuda/cublaslt/lt_problem.hpp"

#include <optional>

#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

namespace {

std::optional<LtType> type_of(DType dtype) {
  switch (dtype) {
    case f64: return LtType::f64;
    case f32: return LtType::f32;
    case f16: return LtType::f16;
    case bf16: return LtType::bf16;
    default: return {};
  }
}

// The two axes as rows and columns, one of them contiguous. False where neither is, or where
// columns overlap.
bool take_matrix(const View& view, int row_axis, int column_axis, LtMatrix& matrix) {
  matrix.view = view;
  matrix.transposed = !is_contiguous(view, row_axis);
  if (matrix.transposed) std::swap(row_axis, column_axis);
  if (!is_contiguous(view, row_axis)) return false;
  matrix.rows = view.dims[row_axis];
  matrix.columns = view.dims[column_axis];
  matrix.column_distance = matrix.columns == 1 ? matrix.rows : view.strides[column_axis];
  return matrix.column_distance >= matrix.rows;
}

// Stride of all axes but the last two of `dims`, merged into one; nothing where batch strides are
// not uniform.
std::optional<std::int64_t> batch_distance(const View& view, const Dims& dims) {
  std::int64_t distance = 0, extent = 1;  // of the axes so far, the innermost first
  for (int axis = dims.rank() - 3; axis >= 0; --axis) {
    if (dims[axis] == 1) continue;
    const std::int64_t stride = view.dims[axis] == 1 ? 0 : view.strides[axis];
    if (stride < 0) return {};
    if (extent == 1)
      distance = stride;
    else if (stride != distance * extent)
      return {};
    extent *= dims[axis];
  }
  return distance;
}

// Matches acc, or acc + bias: returns the bias, absent where there is none. Activations stay with
// other engines: cuBLASLt does not document their handling of NaN.
std::optional<View> match_bias(const PointwiseProgram& epilogue, DType wide) {
  using Step = PointwiseProgram::Step;
  View bias;
  int value = 0;
  if (!epilogue.has_accumulator() || epilogue.stores.size() != 1) return {};
  for (int i = 1; i < static_cast<int>(epilogue.steps.size()); ++i) {
    const Step& step = epilogue.steps[static_cast<std::size_t>(i)];
    if (step.round_to) return {};
    if (step.kind == Step::Kind::load) continue;  // checked where it is used
    if (step.kind != Step::Kind::compute || step.op.mode != PointwiseMode::add ||
        step.op.alpha1 != 1.0 || step.op.alpha2 != 1.0 || step.compute != wide || bias.present())
      return {};
    const int x = step.args[Pointwise::x], b = step.args[Pointwise::b];
    if ((x == value) == (b == value)) return {};
    const Step& other = epilogue.steps[static_cast<std::size_t>(x == value ? b : x)];
    if (other.kind != Step::Kind::load) return {};
    bias = other.view;
    value = i;
  }
  if (epilogue.stores[0].value != value) return {};
  return bias;
}

}  // namespace

Support describe(const Region& region, LtProblem& problem) {
  const auto* op = region.anchor_as<Matmul>();
  if (op == nullptr) return Support::other_operation("not a matmul");
  for (const int length : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
    if (region.anchor->inputs[static_cast<std::size_t>(length)].present())
      return Support::no("row, column or K lengths per batch are not supported");
  const PointwiseProgram &of_a = region.prologues[Matmul::a], &of_b = region.prologues[Matmul::b];
  if (!of_a.is_plain_load() || !of_b.is_plain_load())
    return Support::no("a prologue is fused into an operand");
  const View &a = of_a.steps[0].view, &b = of_b.steps[0].view;
  const auto inputs = type_of(a.dtype);
  if (!inputs || a.dtype != b.dtype)
    return Support::no("operands are {} and {}, both must be f64, f32, f16 or bf16",
                       to_string(a.dtype), to_string(b.dtype));
  const DType wide = a.dtype == f64 ? f64 : f32;
  if (region.anchor->compute != wide)
    return Support::no("compute type is {}", to_string(region.anchor->compute));
  const std::optional<View> bias = match_bias(region.epilogue, wide);
  if (!bias) return Support::no("the epilogue is not a single bias");
  const View& d = region.epilogue.stores[0].view;
  if (d.dtype != a.dtype && d.dtype != wide)
    return Support::no("result is {}, operands are {}", to_string(d.dtype), to_string(a.dtype));
  for (const View* view : {&a, &b, &d, &*bias})
    if (view->ragged_offset != kNoTensor) return Support::no("a tensor is ragged");
  const int rank = d.dims.rank();
  if (element_count(d.dims) == 0 || a.dims[rank - 1] == 0) return Support::no("no elements");

  // The result's columns must be contiguous: where its rows are, the transpose b' a' is computed.
  const bool swap = !is_contiguous(d, rank - 2);
  const int m = swap ? rank - 1 : rank - 2, n = swap ? rank - 2 : rank - 1;
  const View &left = swap ? b : a, &right = swap ? a : b;
  const int depth_of_left = swap ? rank - 2 : rank - 1, depth_of_right = swap ? rank - 1 : rank - 2;
  if (!take_matrix(left, m, depth_of_left, problem.a) ||
      !take_matrix(right, depth_of_right, n, problem.b))
    return Support::no("neither rows nor columns of an operand are contiguous");
  if (!take_matrix(d, m, n, problem.d) || problem.d.transposed)
    return Support::no("neither rows nor columns of the result are contiguous");

  for (int axis = 0; axis < rank - 2; ++axis) problem.batches *= d.dims[axis];
  for (LtMatrix* matrix : {&problem.a, &problem.b, &problem.d}) {
    const auto distance = batch_distance(matrix->view, d.dims);
    if (!distance) return Support::no("batch strides of an operand are not uniform");
    matrix->batch_distance = *distance;
  }
  if (problem.batches > 1 && problem.d.batch_distance == 0)
    return Support::no("batches of the result overlap");
  constexpr std::int64_t kMost = 0x7fffffff;
  for (const LtMatrix* matrix : {&problem.a, &problem.b, &problem.d})
    if (matrix->rows > kMost || matrix->columns > kMost || problem.batches > kMost)
      return Support::no("an extent exceeds 2^31 - 1");

  if (bias->present()) {
    if (bias->dtype != d.dtype) return Support::no("bias is {}", to_string(bias->dtype));
    for (int axis = 0; axis < rank; ++axis)
      if (bias->strides[axis] != (axis == m ? 1 : 0) && d.dims[axis] != 1)
        return Support::no("bias does not have one element per {}", swap ? "column" : "row");
  }
  problem.bias = *bias;
  problem.inputs = *inputs;
  problem.output = *type_of(d.dtype);
  problem.compute = wide == f64 ? LtCompute::f64 : LtCompute::f32;
  return Support::yes();
}

}  // namespace ashlar::cuda
