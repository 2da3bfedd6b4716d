// Inference and validation of matmul.
#include "graph/ops/infer.hpp"

namespace ashlar {

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

}  // namespace ashlar
