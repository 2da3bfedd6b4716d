// Cross-entropy: one CTA per row forward, one thread per element backward.
#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

template <class Op>
std::int64_t add_loss_rows(const Op& op, GenericKernel& kernel) {
  const Dims& x = kernel.in(Op::x).dims;
  Dims lines = x, group = Dims::filled(x.rank(), 1);
  lines[x.rank() - 1] = 1;
  group[x.rank() - 1] = x[x.rank() - 1];
  kernel.file("group");
  kernel.file("cross_entropy");
  kernel.constant("kRank", x.rank());
  kernel.constant("kMean", op.mean);
  kernel.constant("kSmooths", op.label_smoothing != 0.0);
  kernel.numbers("lines", lines);
  kernel.numbers("group", group);
  kernel.number("group_size", element_count(group));
  const std::int64_t rows = element_count(lines);
  kernel.number("rows", rows);
  kernel.number("ignore_index", op.ignore_index);
  kernel.real("smoothing", op.label_smoothing);
  return rows;
}

}  // namespace

void describe(const CrossEntropyForward& op, GenericKernel& kernel) {
  const std::int64_t rows = add_loss_rows(op, kernel);
  kernel.file("cross_entropy_forward");
  kernel.scratch("losses", (op.mean ? rows : 1) * kernel.register_bytes());
  kernel.block_pass(rows);
  if (op.mean) kernel.block_pass(1);
}

void describe(const CrossEntropyBackward& op, GenericKernel& kernel) {
  add_loss_rows(op, kernel);
  kernel.file("cross_entropy_backward");
  kernel.scratch("count", static_cast<std::int64_t>(sizeof(std::int64_t)));
  kernel.block_pass(op.mean ? 1 : 0);
  kernel.pass_over_output(CrossEntropyBackward::dx);
}

}  // namespace ashlar::cuda
