// Norms, the building blocks of batch norm, and softmax: reductions over boxes of elements.
#include "graph/norm_shapes.hpp"

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

// Extents of a box where x is split into `boxes` along every axis.
Dims box_of(const Dims& x, const Dims& boxes) {
  Dims box = x;
  for (int axis = 0; axis < x.rank(); ++axis) box[axis] /= std::max<std::int64_t>(boxes[axis], 1);
  return box;
}

// args.group: the extents of the box of one CTA.
void add_group(const Dims& x, const Dims& boxes, GenericKernel& kernel) {
  const Dims group = box_of(x, boxes);
  kernel.file("group");
  kernel.constant("kRank", x.rank());
  kernel.numbers("group", group);
  kernel.number("group_size", element_count(group));
}

template <class Norm>
NormShapes add_norm(const Norm& op, GenericKernel& kernel) {
  const Dims& x = kernel.in(Norm::x).dims;
  const NormShapes shapes = norm_shapes(op.mode, x, op.axes, op.groups);
  add_group(x, shapes.statistics, kernel);
  kernel.file("norm_statistics");
  kernel.constant("kIsCentred", op.mode != NormMode::rms);
  kernel.numbers("statistics", shapes.statistics);
  kernel.real("epsilon", op.epsilon);
  return shapes;
}

// One box per channel.
void add_channels(const Dims& x, GenericKernel& kernel) {
  Dims channels = Dims::filled(x.rank(), 1);
  channels[1] = x[1];
  add_group(x, channels, kernel);
  kernel.file("channel");
}

void add_lines(const SoftmaxAttributes& op, const Dims& x, GenericKernel& kernel) {
  const auto axis = static_cast<int>(op.axis < 0 ? op.axis + x.rank() : op.axis);
  Dims lines = x;
  lines[axis] = 1;
  add_group(x, lines, kernel);
  kernel.constant("kLog", op.log);
  kernel.numbers("lines", lines);
  kernel.block_pass(element_count(lines));
}

}  // namespace

void describe(const NormForward& op, GenericKernel& kernel) {
  const NormShapes shapes = add_norm(op, kernel);
  kernel.file("norm_forward");
  kernel.constant("kFromRunning", op.mode == NormMode::batch && op.phase == NormPhase::inference);
  kernel.real("momentum", op.momentum);
  const double n =
      static_cast<double>(element_count(box_of(kernel.in(NormForward::x).dims, shapes.statistics)));
  kernel.real("unbiased", n > 1.0 ? n / (n - 1.0) : 1.0);
  kernel.block_pass(element_count(shapes.statistics));
}

void describe(const NormBackward& op, GenericKernel& kernel) {
  const NormShapes shapes = add_norm(op, kernel);
  kernel.file("norm_backward");
  const Dims reach = box_of(kernel.in(NormBackward::x).dims, shapes.parameters);
  kernel.numbers("parameters", shapes.parameters);
  kernel.numbers("reach", reach);
  kernel.number("reach_size", element_count(reach));
  kernel.scratch("kept_statistics", 2 * element_count(shapes.statistics) * kernel.register_bytes());
  kernel.block_pass(element_count(shapes.statistics));
  if (kernel.has_out(NormBackward::dscale) || kernel.has_out(NormBackward::dbias))
    kernel.block_pass(element_count(shapes.parameters));
}

void describe(const GenStats&, GenericKernel& kernel) {
  const Dims& x = kernel.in(GenStats::x).dims;
  add_channels(x, kernel);
  kernel.file("gen_stats");
  kernel.block_pass(x[1]);
}

void describe(const BnFinalize& op, GenericKernel& kernel) {
  const Dims& channels = kernel.out(BnFinalize::eq_scale).dims;
  add_channels(channels, kernel);
  kernel.file("bn_finalize");
  kernel.constant("kFromRunning", op.phase == NormPhase::inference);
  kernel.real("epsilon", op.epsilon);
  kernel.real("momentum", op.momentum);
  kernel.number("count", op.count);
  kernel.pass(channels[1]);
}

void describe(const BnBackwardWeights&, GenericKernel& kernel) {
  const Dims& x = kernel.in(BnBackwardWeights::x).dims;
  add_channels(x, kernel);
  kernel.file("bn_backward_weights");
  kernel.block_pass(x[1]);
}

void describe(const SoftmaxForward& op, GenericKernel& kernel) {
  add_lines(op, kernel.in(SoftmaxForward::x).dims, kernel);
  kernel.file("softmax_forward");
}

void describe(const SoftmaxBackward& op, GenericKernel& kernel) {
  add_lines(op, kernel.out(SoftmaxBackward::dx).dims, kernel);
  kernel.file("softmax_backward");
}

}  // namespace ashlar::cuda
