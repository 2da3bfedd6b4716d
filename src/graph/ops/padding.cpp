// Definition of pad, pad_backward.
#include "base/checked.hpp"
#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// One value per axis, negative ones in mode constant only.
void normalise_counts(const NodeContext& node, std::string_view name, PadMode mode, Dims& counts,
                      int rank) {
  if (counts.empty()) counts = Dims::filled(rank, 0);
  if (counts.rank() != rank) node.reject(name, counts, "{} values, one per axis", rank);
  for (const std::int64_t count : counts)
    if (count < 0 && mode != PadMode::constant)
      node.reject(name, counts, "values of at least 0 in mode {}; only constant removes elements",
                  enum_name(mode));
}

// Whether the unpadded extents hold the elements that the mode repeats.
void require_elements(const NodeContext& node, PadMode mode, const Dims& before, const Dims& after,
                      const Dims& unpadded) {
  if (mode == PadMode::constant) return;
  for (int axis = 0; axis < unpadded.rank(); ++axis) {
    const std::int64_t most = std::max(before[axis], after[axis]), extent = unpadded[axis];
    if (most == 0) continue;
    if (mode == PadMode::reflect && most >= extent)
      node.reject(fmt::format("padding of axis {}", axis), most,
                  "less than {}, the extent to reflect", extent);
    if (mode == PadMode::circular && most > extent)
      node.reject(fmt::format("padding of axis {}", axis), most, "at most {}, the extent to repeat",
                  extent);
    if (mode == PadMode::edge && extent == 0)
      node.reject(fmt::format("padding of axis {}", axis), most, "0 around an axis of no elements");
  }
}

// The extents after adding `sign` times the counts.
Dims padded_dims(const NodeContext& node, std::string_view result, const Dims& dims,
                 const Dims& before, const Dims& after, int sign) {
  Dims padded;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    const std::int64_t count = checked_add(before[axis], after[axis]);
    padded.push_back(checked_add(dims[axis], sign > 0 ? count : checked_mul(count, -1)));
    if (padded[axis] < 0)
      node.reject(fmt::format("axis {} of {}", axis, result), padded[axis], "at least 0 elements");
  }
  return padded;
}

void infer_pad(NodeContext& node) {
  auto& op = node.op<Pad>();
  const Tensor& x = node.input(Pad::x);
  normalise_counts(node, "before", op.mode, op.before, x.dims.rank());
  normalise_counts(node, "after", op.mode, op.after, x.dims.rank());
  require_elements(node, op.mode, op.before, op.after, x.dims);
  node.infer_dims(Pad::y, padded_dims(node, "y", x.dims, op.before, op.after, 1));
  node.infer_dtype(Pad::y, x.dtype);
  node.infer_strides_like(Pad::y, x);
}

void infer_pad_backward(NodeContext& node) {
  auto& op = node.op<PadBackward>();
  node.require_arithmetic(PadBackward::dy);
  const Tensor& dy = node.input(PadBackward::dy);
  normalise_counts(node, "before", op.mode, op.before, dy.dims.rank());
  normalise_counts(node, "after", op.mode, op.after, dy.dims.rank());
  const Dims dx = padded_dims(node, "dx", dy.dims, op.before, op.after, -1);
  require_elements(node, op.mode, op.before, op.after, dx);
  node.infer_dims(PadBackward::dx, dx);
  node.infer_dtype(PadBackward::dx, dy.dtype);
  node.infer_strides_like(PadBackward::dx, dy);
}

void pad_gradient(GradientContext& c) {
  const Pad& op = c.op<Pad>();
  const PadBackward backward{.mode = op.mode, .before = op.before, .after = op.after};
  c.add(Pad::x, c.graph().apply(backward, {{PadBackward::dy, c.dy()}}, {},
                                {.dtype = c.spec(Pad::x).dtype}));
}

void pad_backward_gradient(GradientContext& c) {
  const PadBackward& op = c.op<PadBackward>();
  const Pad forward{.mode = op.mode, .before = op.before, .after = op.after};
  c.add(PadBackward::dy,
        c.graph().apply(forward, {{Pad::x, c.dy()}}, {}, {.dtype = c.spec(PadBackward::dy).dtype}));
}

std::vector<Value> sample_pad(Graph& g, DType t) {
  const Pad op{.mode = PadMode::reflect, .before = {0, 0, 1, 2}, .after = {0, 0, 3, 1}};
  return {g.apply(op, {{Pad::x, g.input("x", {1, 4, 6, 6}, t)}}, {Pad::y})[Pad::y]};
}
std::vector<Value> sample_pad_backward(Graph& g, DType t) {
  const PadBackward op{.mode = PadMode::reflect, .before = {0, 0, 1, 2}, .after = {0, 0, 3, 1}};
  return {g.apply(op, {{PadBackward::dy, g.input("dy", {1, 4, 10, 9}, t)}},
                  {PadBackward::dx})[PadBackward::dx]};
}

}  // namespace

template <>
OpTraits define_traits<Pad>() {
  return {.name = "pad",
          .doc_page = "padding",
          .infer = infer_pad,
          .gradient = pad_gradient,
          .sample = sample_pad,
          .fused_inputs = {Pad::x}};
}

template <>
OpTraits define_traits<PadBackward>() {
  return {.name = "pad_backward",
          .doc_page = "padding",
          .infer = infer_pad_backward,
          .gradient = pad_backward_gradient,
          .sample = sample_pad_backward,
          .fused_inputs = {PadBackward::dy}};
}

}  // namespace ashlar
