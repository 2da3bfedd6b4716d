// Convolutions and im2col.
#include <algorithm>

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

template <class Op>
void describe_conv(const Op& op, GenericKernel& kernel, const Dims& x, const Dims& w) {
  const int spatial = w.rank() - 2;
  const std::int64_t groups = w[1] == 0 ? 1 : std::max<std::int64_t>(x[1] / w[1], 1);
  kernel.file("conv_taps");
  kernel.constant("kSpatial", spatial);
  kernel.constant("kFlip", op.mode == ConvMode::convolution);
  kernel.per_axis("padding", op.padding, spatial, 0);
  kernel.per_axis("stride", op.stride, spatial, 1);
  kernel.per_axis("dilation", op.dilation, spatial, 1);
  kernel.number("channels", w[1]);  // per group
  kernel.number("filters", w[0] / groups);
  kernel.real("alpha", op.alpha);
  kernel.real("beta", kernel.has_in(Op::z) ? op.beta : 0.0);
  kernel.pass(element_count(kernel.out(0).dims));
}

}  // namespace

void describe(const ConvForward& op, GenericKernel& kernel) {
  describe_conv(op, kernel, kernel.in(ConvForward::x).dims, kernel.in(ConvForward::w).dims);
  kernel.file("conv_forward");
}

void describe(const ConvBackwardData& op, GenericKernel& kernel) {
  describe_conv(op, kernel, kernel.out(ConvBackwardData::dx).dims,
                kernel.in(ConvBackwardData::w).dims);
  kernel.file("conv_backward_data");
}

void describe(const ConvBackwardFilter& op, GenericKernel& kernel) {
  describe_conv(op, kernel, kernel.in(ConvBackwardFilter::x).dims,
                kernel.out(ConvBackwardFilter::dw).dims);
  kernel.file("conv_backward_filter");
}

void describe(const CausalConvForward& op, GenericKernel& kernel) {
  kernel.file("causal_conv");
  kernel.file("causal_conv_forward");
  kernel.constant("kSilu", op.activation == CausalConvActivation::silu);
  kernel.pass_over_output(CausalConvForward::y);
  kernel.pass_over_output(CausalConvForward::final_state);
}

void describe(const CausalConvBackward& op, GenericKernel& kernel) {
  using Op = CausalConvBackward;
  kernel.file("causal_conv");
  kernel.file("causal_conv_backward");
  kernel.constant("kSilu", op.activation == CausalConvActivation::silu);
  for (int output : {Op::dx, Op::dw, Op::dbias, Op::dinitial_state})
    kernel.pass_over_output(output);
}

void describe(const Im2Col& op, GenericKernel& kernel) {
  const Dims& x = kernel.in(Im2Col::x).dims;
  const int spatial = op.window.rank();
  Dims counts;  // output positions along each spatial axis
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t before = op.padding.empty() ? 0 : op.padding[axis];
    const std::int64_t after = op.post_padding ? (*op.post_padding)[axis] : before;
    const std::int64_t dilation = op.dilation.empty() ? 1 : op.dilation[axis];
    const std::int64_t stride = op.stride.empty() ? 1 : op.stride[axis];
    const std::int64_t reach = (op.window[axis] - 1) * dilation + 1;
    counts.push_back((x[axis + 2] + before + after - reach) / stride + 1);
  }
  kernel.file("im2col");
  kernel.constant("kSpatial", spatial);
  kernel.numbers("window", op.window);
  kernel.numbers("counts", counts);
  kernel.per_axis("padding", op.padding, spatial, 0);
  kernel.per_axis("stride", op.stride, spatial, 1);
  kernel.per_axis("dilation", op.dilation, spatial, 1);
  kernel.pass_over_output(Im2Col::y);
}

}  // namespace ashlar::cuda
