#include "product.hpp"

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
    default: throw Refused(fmt::format("products of {} are not translated", to_string(dtype)));
  }
}

bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

// The last two axes; `rows` of the library are the graph's columns.
Matrix matrix_of(const Graph& graph, TensorId id, std::int64_t batches) {
  const Tensor& tensor = graph.tensor(id);
  const int rank = tensor.dims.rank();
  if (rank > 3) throw Refused("more than one axis of batches is not translated");
  const int down = rank - 2, along = rank - 1;
  Matrix matrix;
  matrix.tensor = id;
  matrix.transposed = tensor.strides[along] != 1 && tensor.dims[along] != 1;
  const int fast = matrix.transposed ? down : along, slow = matrix.transposed ? along : down;
  matrix.rows = tensor.dims[fast];
  matrix.columns = tensor.dims[slow];
  matrix.column_distance = matrix.columns == 1 ? matrix.rows : tensor.strides[slow];
  if ((tensor.strides[fast] != 1 && matrix.rows != 1) || matrix.column_distance < matrix.rows)
    throw Refused("a matrix without a contiguous axis");
  if (rank == 3 && batches > 1) matrix.batch_distance = tensor.dims[0] == 1 ? 0 : tensor.strides[0];
  return matrix;
}

bool has_dims(const Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  const int rank = tensor.dims.rank();
  return rank >= 2 && tensor.dims[rank - 2] == rows && tensor.dims[rank - 1] == columns &&
         element_count(tensor.dims) == rows * columns;
}

// What follows the product, node by node, in the order in which the library does it.
class Chain {
 public:
  Chain(const Graph& graph, Problem& problem) : graph_(graph), problem_(problem) {}

  // Takes the node that reads `value`; returns what it makes.
  TensorId take(const Node& node, TensorId value) {
    const auto* op = std::get_if<Pointwise>(&node.op);
    if (!op) throw Refused("it has no such operation after a product");
    if (problem_.epilogue != Epilogue::none) throw Refused("nothing may follow an activation");
    switch (op->mode) {
      case PointwiseMode::mul: scale(other(node, value)); break;
      case PointwiseMode::add: add(other(node, value)); break;
      case PointwiseMode::relu_fwd: problem_.epilogue = Epilogue::relu; break;
      case PointwiseMode::gelu_approx_tanh_fwd: problem_.epilogue = Epilogue::gelu; break;
      default: throw Refused("it has no such operation after a product");
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
      throw Refused("it multiplies a product by two numbers at most");
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
      throw Refused("it adds one row and one matrix like the result at most");
    }
  }

  const Graph& graph_;
  Problem& problem_;
};

}  // namespace

Problem describe(const Graph& graph, bool tf32) {
  const std::vector<Node>& nodes = graph.nodes();
  if (nodes.empty() || !std::holds_alternative<Matmul>(nodes[0].op))
    throw Refused("the graph does not begin with a product");
  const Node& product = nodes[0];
  for (std::size_t i = Matmul::m_override; i < product.inputs.size(); ++i)
    if (product.inputs[i] != kNoTensor) throw Refused("lengths per batch are not translated");
  const TensorId result = nodes.back().outputs[0];
  const Tensor &a = graph.tensor(product.inputs[Matmul::a]),
               &b = graph.tensor(product.inputs[Matmul::b]), &d = graph.tensor(result);
  if (a.kind != TensorKind::input || b.kind != TensorKind::input || d.kind != TensorKind::output)
    throw Refused("operands and result must lie in memory");

  Problem problem;
  problem.batches = d.dims.rank() == 3 ? d.dims[0] : 1;
  problem.a = matrix_of(graph, product.inputs[Matmul::b], problem.batches);
  problem.b = matrix_of(graph, product.inputs[Matmul::a], problem.batches);
  problem.d = matrix_of(graph, result, problem.batches);
  if (problem.d.transposed) throw Refused("a transposed result is not translated");
  problem.a_type = type_of(b.dtype);
  problem.b_type = type_of(a.dtype);
  problem.d_type = type_of(d.dtype);
  if (a.dtype == DType::f64) problem.compute = Compute::f64;
  if (a.dtype == DType::f32 && tf32) problem.compute = Compute::tf32;

  Chain chain(graph, problem);
  TensorId value = product.outputs[Matmul::c];
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].outputs.size() != 1 || graph.tensor(value).kind != TensorKind::intermediate)
      throw Refused("it writes one result");
    value = chain.take(nodes[i], value);
  }
  if (problem.bias != kNoTensor)
    problem.epilogue = problem.epilogue == Epilogue::relu   ? Epilogue::relu_bias
                       : problem.epilogue == Epilogue::gelu ? Epilogue::gelu_bias
                                                            : Epilogue::bias;
  // Scales of operands are for fp8 alone.
  if (problem.scale_a != kNoTensor && (!is_fp8(a.dtype) || problem.scale_b == kNoTensor))
    throw Refused("it scales operands of fp8 only, and both");
  return problem;
}

}  // namespace ashlar::bench::cublaslt
