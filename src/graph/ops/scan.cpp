// Definition of scans.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_scan(NodeContext& node) {
  auto& op = node.op<Scan>();
  node.require_arithmetic(Scan::x);
  if (op.mode == ScanMode::logsumexp) node.require_floating(Scan::x);
  const Tensor& x = node.input(Scan::x);
  node.normalise_axis("axis", op.axis, x.dims.rank());
  node.infer_dims(Scan::y, x.dims);
  node.infer_dtype(Scan::y, x.dtype);
  node.infer_strides_like(Scan::y, x);
}

// The sums that contain an element are those from it to the end.
void scan_gradient(GradientContext& c) {
  Scan op = c.op<Scan>();
  if (op.mode != ScanMode::add) c.refuse("only scans of mode add have a gradient");
  op.reverse = !op.reverse;
  c.add(Scan::x, c.graph().apply(op, {{Scan::x, c.dy()}}, {}, {.dtype = c.spec(Scan::x).dtype}));
}

std::vector<Value> sample_scan(Graph& g, DType t) {
  return {g.apply(Scan{}, {{Scan::x, g.input("x", {4, 64}, t)}}, {Scan::y})[Scan::y]};
}

}  // namespace

template <>
OpTraits define_traits<Scan>() {
  return {.name = "scan",
          .doc_page = "scan",
          .infer = infer_scan,
          .gradient = scan_gradient,
          .sample = sample_scan,
          .fused_inputs = {Scan::x}};
}

}  // namespace ashlar
