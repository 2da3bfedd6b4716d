#include "matmul.hpp"

#include <fmt/format.h>

namespace ashlar::bench::cublaslt {

namespace {

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return Type::f64;
    case DType::f32: return Type::f32;
    case DType::f16: return Type::f16;
    case DType::bf16: return Type::bf16;
    case DType::e4m3: return Type::e4m3;
    case DType::e5m2: return Type::e5m2;
    default: throw Refused(fmt::format("dtype {} is not translated", to_string(dtype)));
  }
}

bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

// The last two axes. cuBLASLt is column-major: its rows are the graph's columns.
Matrix matrix_of(const Graph& graph, TensorId id, std::int64_t batches) {
  const Tensor& tensor = graph.tensor(id);
  const int rank = tensor.dims.rank();
  if (rank > 3) throw Refused(fmt::format("{} batch dims, at most 1 is translated", rank - 2));
  const int down = rank - 2, along = rank - 1;
  Matrix matrix;
  matrix.tensor = id;
  matrix.transposed = tensor.strides[along] != 1 && tensor.dims[along] != 1;
  const int fast = matrix.transposed ? down : along, slow = matrix.transposed ? along : down;
  matrix.rows = tensor.dims[fast];
  matrix.columns = tensor.dims[slow];
  matrix.leading_dimension = matrix.columns == 1 ? matrix.rows : tensor.strides[slow];
  if ((tensor.strides[fast] != 1 && matrix.rows != 1) || matrix.leading_dimension < matrix.rows)
    throw Refused("a matrix has no contiguous dim");
  if (rank == 3 && batches > 1) matrix.batch_stride = tensor.dims[0] == 1 ? 0 : tensor.strides[0];
  return matrix;
}

bool has_dims(const Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  const int rank = tensor.dims.rank();
  return rank >= 2 && tensor.dims[rank - 2] == rows && tensor.dims[rank - 1] == columns &&
         element_count(tensor.dims) == rows * columns;
}

// The matmul's epilogue, node by node, in the order in which the library applies it.
class Chain {
 public:
  Chain(const Graph& graph, Problem& problem) : graph_(graph), problem_(problem) {}

  // Adds the node that reads `value`; returns its output.
  TensorId take(const Node& node, TensorId value) {
    const auto* op = std::get_if<Pointwise>(&node.op);
    if (!op) throw Refused("the epilogue is not pointwise");
    if (problem_.epilogue != Epilogue::none)
      throw Refused("an operation follows the activation, which must be last");
    switch (op->mode) {
      case PointwiseMode::mul: scale(other(node, value)); break;
      case PointwiseMode::add: add(other(node, value)); break;
      case PointwiseMode::relu_fwd: problem_.epilogue = Epilogue::relu; break;
      case PointwiseMode::gelu_approx_tanh_fwd: problem_.epilogue = Epilogue::gelu; break;
      default: throw Refused("the epilogue has a mode other than mul, add, relu and gelu");
    }
    return node.outputs[0];
  }

 private:
  static TensorId other(const Node& node, TensorId value) {
    return node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
  }
  void scale(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    const bool before = problem_.bias == kNoTensor && problem_.residual == kNoTensor;
    if (tensor.dtype != DType::f32 || element_count(tensor.dims) != 1 || !before ||
        problem_.scale_b != kNoTensor)
      throw Refused("the epilogue multiplies by more than two f32 scalars, or after an add");
    (problem_.scale_a == kNoTensor ? problem_.scale_a : problem_.scale_b) = id;
  }
  void add(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    const Tensor& whole = graph_.tensor(problem_.d.tensor);
    const int rank = whole.dims.rank();
    if (has_dims(tensor, 1, whole.dims[rank - 1]) && problem_.bias == kNoTensor) {
      problem_.bias = id;
      problem_.bias_type = type_of(tensor.dtype);
    } else if (tensor.dims == whole.dims && tensor.strides == whole.strides &&
               tensor.dtype == whole.dtype && problem_.residual == kNoTensor) {
      problem_.residual = id;
    } else {
      throw Refused("the epilogue adds more than one bias row and one residual like the result");
    }
  }

  const Graph& graph_;
  Problem& problem_;
};

}  // namespace

Problem describe(const Graph& graph, bool tf32) {
  const std::vector<Node>& nodes = graph.nodes();
  if (nodes.empty() || !std::holds_alternative<Matmul>(nodes[0].op))
    throw Refused("the first node is not a matmul");
  const Node& matmul = nodes[0];
  for (std::size_t i = Matmul::m_override; i < matmul.inputs.size(); ++i)
    if (matmul.inputs[i] != kNoTensor) throw Refused("M, N, K overrides are not translated");
  const TensorId result = nodes.back().outputs[0];
  const Tensor &a = graph.tensor(matmul.inputs[Matmul::a]),
               &b = graph.tensor(matmul.inputs[Matmul::b]), &d = graph.tensor(result);
  if (a.kind != TensorKind::input || b.kind != TensorKind::input || d.kind != TensorKind::output)
    throw Refused("an operand or the result is not in memory");

  Problem problem;
  problem.batches = d.dims.rank() == 3 ? d.dims[0] : 1;
  problem.a = matrix_of(graph, matmul.inputs[Matmul::b], problem.batches);
  problem.b = matrix_of(graph, matmul.inputs[Matmul::a], problem.batches);
  problem.d = matrix_of(graph, result, problem.batches);
  if (problem.d.transposed) throw Refused("a transposed result is not translated");
  problem.a_type = type_of(b.dtype);
  problem.b_type = type_of(a.dtype);
  problem.d_type = type_of(d.dtype);
  if (a.dtype == DType::f64) problem.compute = Compute::f64;
  if (a.dtype == DType::f32 && tf32) problem.compute = Compute::tf32;

  Chain chain(graph, problem);
  TensorId value = matmul.outputs[Matmul::c];
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].outputs.size() != 1 || graph.tensor(value).kind != TensorKind::intermediate)
      throw Refused("the graph has more than one output");
    value = chain.take(nodes[i], value);
  }
  if (problem.bias != kNoTensor)
    problem.epilogue = problem.epilogue == Epilogue::relu   ? Epilogue::relu_bias
                       : problem.epilogue == Epilogue::gelu ? Epilogue::gelu_bias
                                                            : Epilogue::bias;
  // Only fp8 operands have scales.
  if (problem.scale_a != kNoTensor && (!is_fp8(a.dtype) || problem.scale_b == kNoTensor))
    throw Refused("scales need fp8 operands, and both must have one");
  return problem;
}

}  // namespace ashlar::bench::cublaslt
