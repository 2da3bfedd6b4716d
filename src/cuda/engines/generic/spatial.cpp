// Pooling, interpolation, grid sampling and local norms.
#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

void describe_windows(const ResampleAttributes& op, GenericKernel& kernel) {
  const int spatial = kernel.out(0).dims.rank() - 2;
  kernel.file("resample_windows");
  kernel.constant("kSpatial", spatial);
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kPadding", static_cast<int>(op.padding_mode));
  kernel.constant("kAlignCorners", op.align_corners);
  kernel.constant("kInteger", !is_floating(kernel.anchor().compute));
  kernel.per_axis("window", op.window, spatial, 1);
  kernel.per_axis("stride", op.stride.empty() ? op.window : op.stride, spatial, 1);
  kernel.per_axis("padding", op.padding, spatial, 0);
  kernel.pass_over_output(0);
}

}  // namespace

void describe(const ResampleForward& op, GenericKernel& kernel) {
  describe_windows(op, kernel);
  kernel.file("resample_forward");
}

void describe(const ResampleBackward& op, GenericKernel& kernel) {
  describe_windows(op, kernel);
  kernel.file("resample_backward");
}

void describe(const GridGeneratorForward& op, GenericKernel& kernel) {
  kernel.file("grid_coordinates");
  kernel.file("grid_generator_forward");
  kernel.constant("kAlignCorners", op.align_corners);
  kernel.pass_over_output(GridGeneratorForward::grid);
}

void describe(const GridGeneratorBackward& op, GenericKernel& kernel) {
  kernel.file("grid_coordinates");
  kernel.file("grid_generator_backward");
  kernel.constant("kAlignCorners", op.align_corners);
  kernel.pass_over_output(GridGeneratorBackward::dtheta);
}

namespace {

void describe_point(const GridSampleAttributes& op, GenericKernel& kernel) {
  kernel.file("grid_point");
  kernel.constant("kSpatial", kernel.out(0).dims.rank() - 2);
  kernel.constant("kNearest", op.mode == GridSampleMode::nearest);
  kernel.constant("kPadding", static_cast<int>(op.padding));
  kernel.constant("kAlignCorners", op.align_corners);
}

}  // namespace

void describe(const GridSampleForward& op, GenericKernel& kernel) {
  describe_point(op, kernel);
  kernel.file("grid_sample_forward");
  kernel.pass_over_output(GridSampleForward::y);
}

void describe(const GridSampleBackward& op, GenericKernel& kernel) {
  constexpr std::int64_t kChannels = 16;  // channels of dx per unit
  describe_point(op, kernel);
  kernel.file("grid_sample_backward");
  Dims places = kernel.out(GridSampleBackward::dx).dims;
  places[1] = (places[1] + kChannels - 1) / kChannels;
  kernel.constant("kChannels", kChannels);
  kernel.pass(element_count(places));
  kernel.pass_over_output(GridSampleBackward::dgrid);
}

namespace {

void describe_neighbourhood(const LocalNormAttributes& op, GenericKernel& kernel, bool divisive) {
  const int axes = divisive ? kernel.out(0).dims.rank() - 2 : 1;
  double factor = op.alpha;
  for (int axis = 0; axis < axes; ++axis) factor /= static_cast<double>(op.window);
  kernel.file("local_norm");
  kernel.constant("kDivisive", divisive);
  if (!divisive) kernel.without_input("means");
  kernel.real("factor", factor);
  kernel.real("beta", op.beta);
  kernel.real("k", op.k);
  // Extents of the window below and above its centre.
  kernel.number("below", (op.window - 1) / 2);
  kernel.number("above", op.window - 1 - (op.window - 1) / 2);
}

void describe_neighbourhood_forward(const LocalNormAttributes& op, GenericKernel& kernel,
                                    bool divisive) {
  describe_neighbourhood(op, kernel, divisive);
  kernel.file("local_norm_forward");
  kernel.pass_over_output(0);
}

void describe_neighbourhood_backward(const LocalNormAttributes& op, GenericKernel& kernel,
                                     bool divisive) {
  describe_neighbourhood(op, kernel, divisive);
  kernel.file("local_norm_backward");
  if (!divisive) kernel.without_output("dmeans");
  const std::int64_t elements = element_count(kernel.out(0).dims);
  kernel.scratch("divisors", elements * kernel.register_bytes());
  kernel.pass(elements);
  kernel.pass(elements);
}

}  // namespace

void describe(const LrnForward& op, GenericKernel& kernel) {
  describe_neighbourhood_forward(op, kernel, false);
}
void describe(const LrnBackward& op, GenericKernel& kernel) {
  describe_neighbourhood_backward(op, kernel, false);
}
void describe(const DivisiveNormForward& op, GenericKernel& kernel) {
  describe_neighbourhood_forward(op, kernel, true);
}
void describe(const DivisiveNormBackward& op, GenericKernel& kernel) {
  describe_neighbourhood_backward(op, kernel, true);
}

}  // namespace ashlar::cuda
