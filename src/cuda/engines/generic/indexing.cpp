// Reads and writes at computed positions: gather and scatter.
#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

template <class Op>
void describe_selection(const Op& op, GenericKernel& kernel) {
  kernel.file("selection");
  kernel.constant("kAxis", op.axis);
  kernel.constant("kSlices", op.mode == IndexMode::slices);
}

}  // namespace

void describe(const Gather& op, GenericKernel& kernel) {
  describe_selection(op, kernel);
  kernel.file("gather");
  kernel.constant("kClamp", op.out_of_range == OutOfRange::clamp);
  kernel.pass_over_output(Gather::y);
}

void describe(const Scatter& op, GenericKernel& kernel) {
  describe_selection(op, kernel);
  kernel.file("scatter_combine");
  kernel.file("scatter");
  kernel.constant("kCombine", static_cast<int>(op.combine));
  kernel.pass_over_output(Scatter::y);
}

}  // namespace ashlar::cuda
