// cudnnGetFoldedConvBackwardDataDescriptors(): a strided backward-data convolution as one of stride
// 1, by folding the s pixels of each stride into channels (space to depth).
//
// Along one axis y[p] = sum of x[p * s + r - pad] * w[r]. With P = pad / s rounded up, r + P * s -
// pad = s * r' + j and h = s * q + j that is the sum over j and r' of xf[j, p + r' - P] * wf[j,
// r'], where xf is x folded by s, and wf is w with P * s - pad zeros before it, zero-padded at the
// end to s * R' and folded. That convolution has stride 1 and padding P. y is zero-padded at the
// end to the extent that xf needs. Trailing elements of x that no output reads may be dropped from
// xf: their gradient is 0.
//
// Extents match NVIDIA's: output channels are padded to a multiple of 8, and input channels so that
// a folded block has a multiple of 8, if some number of input channels gives that.
#include "core/guarded.hpp"
#include "legacy/convolution.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

struct Folding {
  cudnnConvolutionStruct conv;
  Dims filter, dy, dx;  // folded extents
  // Padding per tensor axis; folds per spatial axis.
  Dims filter_before = {}, filter_after = {}, dy_after = {}, fold_after = {}, unfold_after = {};
  Dims folds = {};
};

std::int64_t blocks(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

void fold_axis(Folding& folding, int axis) {
  const int tensor_axis = axis + 2;
  const std::int64_t fold = folding.conv.stride[axis], pad = folding.conv.padding[axis];
  const std::int64_t elements = folding.filter[tensor_axis], results = folding.dy[tensor_axis];
  const std::int64_t extent = folding.dx[tensor_axis],
                     reached = (results - 1) * fold + elements - pad;
  const std::int64_t padding = blocks(pad, fold), before = padding * fold - pad;
  const std::int64_t window = blocks(elements + before, fold);
  const std::int64_t folded = blocks(std::min(extent, std::max<std::int64_t>(reached, 1)), fold);
  folding.filter[tensor_axis] = window;
  folding.filter_before[tensor_axis] = before;
  folding.filter_after[tensor_axis] = window * fold - elements - before;
  folding.dx[tensor_axis] = folded;
  folding.fold_after[tensor_axis] = std::min<std::int64_t>(folded * fold - extent, 0);
  folding.unfold_after[tensor_axis] = extent - folded * fold;
  folding.dy[tensor_axis] = folded + 2 * padding - window + 1;
  folding.dy_after[tensor_axis] = folding.dy[tensor_axis] - results;
  folding.folds[axis] = fold;
  folding.conv.padding[axis] = padding;
  folding.conv.stride[axis] = 1;
}

void fill_channels(Folding& folding) {
  constexpr std::int64_t kChannels = 8;
  const std::int64_t block = element_count(folding.folds);
  const std::int64_t outputs = blocks(folding.dy[1], kChannels) * kChannels;
  const std::int64_t inputs = blocks(folding.dx[1] * block, kChannels) * kChannels / block;
  folding.filter_after[0] = folding.dy_after[1] = outputs - folding.dy[1];
  folding.filter_after[1] = folding.fold_after[1] = inputs - folding.dx[1];
  folding.unfold_after[1] = folding.dx[1] - inputs;
  folding.filter[0] = folding.dy[1] = outputs;
  folding.filter[1] = folding.dx[1] = inputs * block;
}

// Dilated axes are not folded. Nothing is folded for flipped filters (a fold does not flip the
// pixels inside a block) and for grouped ones (the folded channels of a group are not contiguous).
Folding folding_of(const cudnnConvolutionStruct& conv, const Dims& filter, const Dims& dy,
                   const Dims& dx) {
  const int rank = dx.rank();
  Folding folding{conv, filter, dy, dx};
  folding.filter_before = folding.filter_after = folding.dy_after = folding.fold_after =
      folding.unfold_after = Dims::filled(rank, 0);
  folding.folds = Dims::filled(rank - 2, 1);
  if (conv.mode != CUDNN_CROSS_CORRELATION || conv.groups != 1) return folding;
  for (int axis = 0; axis < rank - 2; ++axis)
    if (conv.dilation[axis] == 1) fold_axis(folding, axis);
  fill_channels(folding);
  return folding;
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
    fail(status, "{}: got a descriptor that cannot be set, expected a live one", parameter);
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
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Convolution provided =
        make_convolution(ConvKind::backward_data, dx_desc, filter_desc, conv, dy_desc);
    const Folding folding = folding_of(convolution_of(conv, "convDesc"), provided.w.dims,
                                       provided.y.dims, provided.x.dims);

    auto& to_filter = object(folded_filter, "foldedFilterDesc");
    auto& to_dy = object(padded_dy, "paddedDiffDesc");
    auto& to_conv = object(folded_conv, "foldedConvDesc");
    auto& to_dx = object(folded_dx, "foldedGradDesc");
    set(to_filter, filter_desc->type, format, folding.filter);
    set(to_dy, dy_desc->type, packed_spec(dy_desc->type, format, folding.dy));
    set(to_dx, dx_desc->type, packed_spec(dx_desc->type, format, folding.dx));
    to_conv = folding.conv;

    const Dims none = Dims::filled(provided.x.dims.rank(), 0);
    const Dims ones = Dims::filled(provided.x.dims.rank() - 2, 1);
    set_transform(filter_fold, format, folding.filter_before, folding.filter_after, folding.folds,
                  CUDNN_TRANSFORM_FOLD, "filterFoldTransDesc");
    set_transform(dy_pad, format, none, folding.dy_after, ones, CUDNN_TRANSFORM_FOLD,
                  "diffPadTransDesc");
    set_transform(dx_fold, format, none, folding.fold_after, folding.folds, CUDNN_TRANSFORM_FOLD,
                  "gradFoldTransDesc");
    set_transform(dx_unfold, format, none, folding.unfold_after, folding.folds,
                  CUDNN_TRANSFORM_UNFOLD, "gradUnfoldTransDesc");
  });
}
