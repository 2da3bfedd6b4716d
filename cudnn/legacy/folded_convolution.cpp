// The gradient of a strided convolution's input as one of stride 1: places that a stride apart
// belong together are folded into channels.
//
// Along one axis y[p] = sum of x[p * s + r - pad] * w[r]. With h + pad = s * q + j and r = s * r' +
// j that is the sum over j and r' of xf[j, p + r'] * wf[j, r'], where xf is x with pad zeros in
// front and wf is w filled up with zeros to s * R', both folded by s: stride 1, no padding. y gets
// zeros behind it where x is longer than its results reach.
#include "core/answer.hpp"
#include "legacy/convolution.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

struct Folding {
  cudnnConvolutionStruct conv;
  Dims filter, dy, dx;  // extents after
  std::int64_t block = 1;
  // Per axis of a tensor; folds per spatial axis.
  Dims filter_after = {}, dy_after = {}, dx_before = {}, dx_after = {}, folds = {};
};

// Dilated axes stay as they are, and so do all when the filter is flipped (a fold does not flip the
// places inside a block) or has groups (the folded channels of one do not lie next to each other).
bool can_fold(const cudnnConvolutionStruct& conv, int axis) {
  return conv.mode == CUDNN_CROSS_CORRELATION && conv.groups == 1 && conv.stride[axis] > 1 &&
         conv.dilation[axis] == 1;
}

Folding folding_of(const cudnnConvolutionStruct& conv, const Dims& filter, const Dims& dy,
                   const Dims& dx) {
  const int rank = dx.rank();
  Folding folding{conv, filter, dy, dx};
  folding.filter_after = folding.dy_after = folding.dx_before = folding.dx_after =
      Dims::filled(rank, 0);
  folding.folds = Dims::filled(rank - 2, 1);
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (!can_fold(conv, axis)) continue;
    const int place = axis + 2;
    const std::int64_t fold = conv.stride[axis], pad = conv.padding[axis];
    const auto blocks = [&](std::int64_t extent) { return (extent + fold - 1) / fold; };
    const std::int64_t window = blocks(filter[place]);
    const std::int64_t reached = std::max(dy[place], blocks(dx[place] + pad) - window + 1);
    const std::int64_t folded = reached + window - 1;
    folding.filter[place] = window;
    folding.dy[place] = reached;
    folding.dx[place] = folded;
    folding.filter_after[place] = window * fold - filter[place];
    folding.dy_after[place] = reached - dy[place];
    folding.dx_before[place] = pad;
    folding.dx_after[place] = folded * fold - dx[place] - pad;
    folding.folds[axis] = fold;
    folding.block *= fold;
    folding.conv.padding[axis] = 0;
    folding.conv.stride[axis] = 1;
  }
  folding.filter[1] *= folding.block;
  folding.dx[1] *= folding.block;
  return folding;
}

// Pads that take away what the given ones add.
Dims cropped(Dims pads) {
  for (std::int64_t& pad : pads) pad = -pad;
  return pads;
}

void set_transform(cudnnTensorTransformDescriptor_t transform, cudnnTensorFormat_t format,
                   const Dims& before, const Dims& after, const Dims& folds,
                   cudnnFoldingDirection_t direction, const char* parameter) {
  required(transform, parameter);
  std::vector<std::int32_t> pads_before(before.begin(), before.end());
  std::vector<std::int32_t> pads_after(after.begin(), after.end());
  std::vector<std::uint32_t> blocks(folds.begin(), folds.end());
  const cudnnStatus_t status = cudnnSetTensorTransformDescriptor(
      transform, static_cast<std::uint32_t>(before.rank()), format, pads_before.data(),
      pads_after.data(), blocks.data(), direction);
  if (status != CUDNN_STATUS_SUCCESS)
    fail(status, "{}: got a descriptor that cannot be set, expected one that lives", parameter);
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Dims;

cudnnStatus_t cudnnGetFoldedConvBackwardDataDescriptors(
    cudnnHandle_t handle, cudnnFilterDescriptor_t filter_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx_desc, cudnnTensorFormat_t format,
    cudnnFilterDescriptor_t folded_filter, cudnnTensorDescriptor_t padded_dy,
    cudnnConvolutionDescriptor_t folded_conv, cudnnTensorDescriptor_t folded_dx,
    cudnnTensorTransformDescriptor_t filter_fold, cudnnTensorTransformDescriptor_t dy_pad,
    cudnnTensorTransformDescriptor_t dx_fold, cudnnTensorTransformDescriptor_t dx_unfold) {
  return answer_older(__func__, [&] {
    object(handle, "handle");
    const Convolution given =
        make_convolution(ConvKind::backward_data, dx_desc, filter_desc, conv, dy_desc);
    const Folding folding =
        folding_of(convolution_of(conv, "convDesc"), given.w.dims, given.y.dims, given.x.dims);

    auto& to_filter = object(folded_filter, "foldedFilterDesc");
    auto& to_dy = object(padded_dy, "paddedDiffDesc");
    auto& to_conv = object(folded_conv, "foldedConvDesc");
    auto& to_dx = object(folded_dx, "foldedGradDesc");
    set(to_filter, filter_desc->type, format, folding.filter);
    set(to_dy, dy_desc->type, packed_spec(dy_desc->type, format, folding.dy));
    set(to_dx, dx_desc->type, packed_spec(dx_desc->type, format, folding.dx));
    to_conv = folding.conv;

    const Dims none = Dims::filled(given.x.dims.rank(), 0);
    const Dims ones = Dims::filled(given.x.dims.rank() - 2, 1);
    set_transform(filter_fold, format, none, folding.filter_after, folding.folds,
                  CUDNN_TRANSFORM_FOLD, "filterFoldTransDesc");
    set_transform(dy_pad, format, none, folding.dy_after, ones, CUDNN_TRANSFORM_FOLD,
                  "diffPadTransDesc");
    set_transform(dx_fold, format, folding.dx_before, folding.dx_after, folding.folds,
                  CUDNN_TRANSFORM_FOLD, "gradFoldTransDesc");
    set_transform(dx_unfold, format, cropped(folding.dx_before), cropped(folding.dx_after),
                  folding.folds, CUDNN_TRANSFORM_UNFOLD, "gradUnfoldTransDesc");
  });
}
