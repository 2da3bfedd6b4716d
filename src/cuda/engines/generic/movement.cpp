// Data movement: reshape, transpose, slice, concatenation, folds, padding, paged caches, band
// matrices.
#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

void describe(const Reshape&, GenericKernel& kernel) {
  kernel.file("reshape");
  kernel.pass_over_output(Reshape::y);
}

void describe(const Transpose& op, GenericKernel& kernel) {
  kernel.file("transpose");
  kernel.numbers("permutation", op.permutation);
  kernel.pass_over_output(Transpose::y);
}

void describe(const Slice& op, GenericKernel& kernel) {
  kernel.file("slice");
  const int rank = kernel.out(Slice::y).dims.rank();
  kernel.per_axis("start", op.start, rank, 0);
  kernel.per_axis("step", op.step, rank, 1);
  kernel.pass_over_output(Slice::y);
}

// One pass per input; only its offset in y differs.
void describe(const Concat& op, GenericKernel& kernel) {
  kernel.file("concat");
  const int rank = kernel.out(Concat::y).dims.rank();
  const auto axis = static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis);
  kernel.constant("kAxis", axis);
  std::int64_t begin = 0;
  for (int input = 0; input < static_cast<int>(kernel.anchor().inputs.size()); ++input) {
    const Dims& dims = kernel.in(input).dims;
    kernel.pass({.units = element_count(dims), .input = input, .begin = begin});
    begin += dims[axis];
  }
}

void describe(const TensorTransform& op, GenericKernel& kernel) {
  kernel.file("tensor_transform");
  const int rank = kernel.out(TensorTransform::y).dims.rank();
  kernel.constant("kUnfold", op.unfold);
  kernel.constant("kFolds", op.fold.rank());
  kernel.per_axis("pad_before", op.pad_before, rank, 0);
  kernel.numbers("fold", op.fold);
  kernel.real("alpha", op.alpha);
  kernel.real("beta", op.beta);
  kernel.pass_over_output(TensorTransform::y);
}

void describe(const Pad& op, GenericKernel& kernel) {
  kernel.file("pad");
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.numbers("before", op.before);
  kernel.real("value", op.value);
  kernel.pass_over_output(Pad::y);
}

void describe(const PadBackward& op, GenericKernel& kernel) {
  kernel.file("pad_backward");
  int choices = 1;  // of one range per axis
  if (op.mode != PadMode::constant)
    for (int axis = 0; axis < op.before.rank(); ++axis) choices *= 3;
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kChoices", choices);
  kernel.numbers("before", op.before);
  kernel.pass_over_output(PadBackward::dx);
}

void describe(const PagedCacheLoad& op, GenericKernel& kernel) {
  kernel.file("paged_cache_load");
  kernel.constant("kTransposed", op.transposed);
  kernel.pass_over_output(PagedCacheLoad::y);
}

namespace {

void describe_band(const BandAttributes& op, GenericKernel& kernel, bool expand) {
  const Dims& y = kernel.out(0).dims;
  const auto axis = static_cast<int>(op.axis < 0 ? op.axis + y.rank() : op.axis);
  kernel.file("band_matrix");
  kernel.constant("kAxis", axis);
  kernel.constant("kExpand", expand);
  kernel.number("lower", op.lower_bandwidth);
  kernel.number("band", op.lower_bandwidth + op.upper_bandwidth);
  kernel.number("columns", expand ? y[axis] : kernel.in(0).dims[axis]);
  kernel.real("pad_value", op.pad_value);
  kernel.pass_over_output(0);
}

}  // namespace

void describe(const ExpandBandMatrix& op, GenericKernel& kernel) {
  describe_band(op, kernel, true);
}
void describe(const ContractBandMatrix& op, GenericKernel& kernel) {
  describe_band(op, kernel, false);
}

}  // namespace ashlar::cuda
