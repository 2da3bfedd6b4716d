// Products and reductions.
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

void describe(const Reduction& op, GenericKernel& kernel) {
  kernel.file("reduction");
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kInteger", !is_floating(kernel.anchor().compute));
  kernel.pass_over_output(Reduction::y);
}

}  // namespace ashlar::cuda
