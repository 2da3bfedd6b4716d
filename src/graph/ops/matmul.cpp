// Definition of matmul.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_matmul(NodeContext& node) {
  node.require_rank(Matmul::a, 2, kMaxRank);
  node.require_arithmetic(Matmul::a);
  node.require_arithmetic(Matmul::b);
  const Tensor& a = node.input(Matmul::a);
  const Tensor& b = node.input(Matmul::b);
  const int rank = a.dims.rank();
  if (is_complex(a.dtype) != is_complex(b.dtype))
    node.reject(fmt::format("dtype of {}", node.input_name(Matmul::b)), b.dtype,
                "{} type, to match {}", is_complex(a.dtype) ? "a complex" : "a real",
                to_string(a.dtype));
  if (b.dims.rank() != rank)
    node.reject(fmt::format("rank of {}", node.input_name(Matmul::b)), b.dims.rank(),
                "{}, that of a", rank);
  if (a.dims[rank - 1] != b.dims[rank - 2])
    node.reject("k",
                fmt::format("{} columns in a and {} rows in b", a.dims[rank - 1], b.dims[rank - 2]),
                "equal counts");

  Dims c;
  Dims lengths;  // one per batch
  for (int axis = 0; axis < rank - 2; ++axis) {
    const std::int64_t m = a.dims[axis], n = b.dims[axis];
    if (m != n && m != 1 && n != 1)
      node.reject(fmt::format("batch axis {}", axis), fmt::format("{} and {}", m, n),
                  "equal extents, or 1");
    c.push_back(m == 1 ? n : m);
    lengths.push_back(c[axis]);
  }
  c.push_back(a.dims[rank - 2]);
  c.push_back(b.dims[rank - 1]);
  lengths.push_back(1);
  lengths.push_back(1);
  node.infer_dims(Matmul::c, c);
  node.infer_dtype(Matmul::c, b.dtype == complex_f64 ? complex_f64 : a.dtype);
  if (is_complex(node.output(Matmul::c).dtype) != is_complex(a.dtype))
    node.reject(fmt::format("dtype of c '{}'", node.output(Matmul::c).name),
                node.output(Matmul::c).dtype, "{} type, to match {}",
                is_complex(a.dtype) ? "a complex" : "a real", to_string(a.dtype));
  node.infer_strides_like(Matmul::c, Tensor{});
  for (int slot : {Matmul::m_override, Matmul::n_override, Matmul::k_override}) {
    node.require_broadcastable(slot, lengths);
    node.require_integer(slot);
  }
}

Contents matmul_contents(const NodeShapes& node, int slot) {
  const Dims& a = node.input(Matmul::a);
  const Dims& b = node.input(Matmul::b);
  switch (slot) {
    case Matmul::m_override: return lengths_up_to(a[a.rank() - 2]);
    case Matmul::n_override: return lengths_up_to(b[b.rank() - 1]);
    case Matmul::k_override: return lengths_up_to(a[a.rank() - 1]);
    default: return {};
  }
}

double matmul_flops(const NodeShapes& node) {
  const Dims& a = node.input(Matmul::a);
  const double products = count_of(node.output(Matmul::c)) * static_cast<double>(a[a.rank() - 1]);
  return (is_complex(node.input_dtype(Matmul::a)) ? 8 : 2) * products;
}

std::vector<Value> sample_matmul(Graph& g, DType t) {
  return {g.matmul(g.input("a", {2, 8, 16}, t), g.input("b", {2, 16, 8}, t))};
}

Value transposed(Graph& graph, Value x) {
  const int rank = x.dims().rank();
  Dims permutation;
  for (int axis = 0; axis < rank; ++axis) permutation.push_back(axis);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return graph.transpose(x, permutation);
}

// All rows of all batches as one matrix.
Value as_one_matrix(Graph& graph, Value x) {
  const int rank = x.dims().rank();
  Dims dims = Dims::filled(rank, 1);
  dims[rank - 2] = -1;
  dims[rank - 1] = x.dims()[rank - 1];
  return graph.reshape(x, dims);
}

void matmul_gradient(GradientContext& c) {
  for (const int slot : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
    if (c.input(slot)) c.refuse("it has M, N or K per batch");
  Graph& graph = c.graph();
  const Value a = c.input(Matmul::a), b = c.input(Matmul::b), dy = c.dy();
  const int rank = a.dims().rank();
  const auto matmul = [&](Value left, Value right, int slot) {
    return graph.matmul(left, right, {.dtype = c.spec(slot).dtype});
  };
  if (c.wants(Matmul::a)) c.add(Matmul::a, matmul(dy, transposed(graph, b), Matmul::a));
  if (!c.wants(Matmul::b)) return;
  // A weight that all batches share: one GEMM over all rows instead of one per batch and a sum.
  bool is_shared = rank > 2, has_rows = true;
  for (int axis = 0; axis < rank - 2; ++axis) {
    is_shared = is_shared && b.dims()[axis] == 1;
    has_rows = has_rows && a.dims()[axis] == dy.dims()[axis];
  }
  if (is_shared && has_rows && element_count(a.dims()) > 0)
    c.add(Matmul::b,
          matmul(transposed(graph, as_one_matrix(graph, a)), as_one_matrix(graph, dy), Matmul::b));
  else
    c.add(Matmul::b, matmul(transposed(graph, a), dy, Matmul::b));
}

}  // namespace

template <>
OpTraits define_traits<Matmul>() {
  return {.name = "matmul",
          .doc_page = "matmul",
          .infer = infer_matmul,
          .gradient = matmul_gradient,
          .sample = sample_matmul,
          .contents = matmul_contents,
          .flops = matmul_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {Matmul::a, Matmul::b},
          .supports_complex = true,
          .fused_inputs = {Matmul::a, Matmul::b},
          .dequantizes_inputs = true,
          .is_gemm_like = true,
          .has_tails = true};
}

}  // namespace ashlar
