// Matmul, mixture of experts and reductions.
#include <algorithm>

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

void describe(const Matmul& op, GenericKernel& kernel) {
  kernel.file("matmul");
  kernel.real("padding_value", op.padding_value);
  kernel.pass_over_output(Matmul::c);
}

namespace {

void describe_routing(const MoeAttributes& op, GenericKernel& kernel, std::int64_t experts) {
  kernel.file("moe_routing");
  kernel.constant("kGather", op.mode == MoeMode::gather);
  kernel.constant("kScatter", op.mode == MoeMode::scatter);
  kernel.number("top_k", op.top_k);
  kernel.number("experts", experts);
}

}  // namespace

void describe(const MoeGroupedMatmul& op, GenericKernel& kernel) {
  describe_routing(op, kernel, kernel.in(MoeGroupedMatmul::weight).dims[0]);
  kernel.file("moe_forward");
  kernel.pass_over_output(MoeGroupedMatmul::output);
}

void describe(const MoeGroupedMatmulBackward& op, GenericKernel& kernel) {
  using Op = MoeGroupedMatmulBackward;
  describe_routing(
      op, kernel,
      kernel.in(kernel.has_in(Op::weight) ? Op::weight : Op::first_token_offset).dims[0]);
  kernel.file("moe_backward");
  kernel.pass_over_output(Op::dweight);
  kernel.pass_over_output(Op::dtoken);
}

namespace {

// Whether neighbouring elements in memory belong to different outputs.
bool keeps_innermost_axis(const View& x, const Dims& y) {
  for (int axis = 0; axis < y.rank(); ++axis)
    if (x.dims[axis] > 1 && x.strides[axis] == 1) return y[axis] != 1;
  return false;
}

}  // namespace

void describe(const Reduction& op, GenericKernel& kernel) {
  constexpr std::int64_t kThreadsWanted = 1 << 18, kFewTerms = 64, kPartialBytes = 24;
  const View& x = kernel.in(Reduction::x);
  const Dims& y = kernel.out(Reduction::y).dims;
  Dims reduced = x.dims;  // extents of an output's terms
  for (int axis = 0; axis < y.rank(); ++axis)
    if (y[axis] != 1) reduced[axis] = 1;
  const std::int64_t outputs = element_count(y), terms = element_count(reduced);
  // Threads per output, and the number of partials that they leave to the last pass.
  std::int64_t parts = 0, groups = 0;
  if (terms > kFewTerms && outputs > 0 && outputs < kThreadsWanted) {
    parts = std::min((terms + kFewTerms - 1) / kFewTerms, kThreadsWanted / outputs);
    while (groups * groups < parts) ++groups;
  }
  kernel.file("reduction");
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kInteger", !is_floating(kernel.anchor().compute));
  kernel.constant("kOutputsFirst", keeps_innermost_axis(x, y));
  kernel.numbers("reduced", reduced);
  kernel.number("outputs", outputs);
  kernel.number("terms", terms);
  kernel.number("parts", parts);
  kernel.number("groups", groups);
  kernel.scratch("partials", outputs * (parts + groups) * kPartialBytes);
  kernel.pass(outputs * parts);
  kernel.pass(outputs * groups);
  kernel.pass(outputs);
}

}  // namespace ashlar::cuda
