#include "legacy/convolution_descriptor.hpp"

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr int kImageRank = 4;
constexpr int kBatchAndChannels = 2;  // axes before the spatial ones

void require_at_least(const Dims& values, std::int64_t minimum, const char* parameter) {
  for (int axis = 0; axis < values.rank(); ++axis)
    if (values[axis] < minimum)
      fail(CUDNN_STATUS_BAD_PARAM, "{}[{}]: got {}, expected at least {}", parameter, axis,
           values[axis], minimum);
}

void set(cudnnConvolutionStruct& conv, const Dims& padding, const Dims& stride,
         const Dims& dilation, cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  require_at_least(padding, 0, "pad");
  require_at_least(stride, 1, "filterStride");
  require_at_least(dilation, 1, "dilation");
  require_enum(mode, CUDNN_CROSS_CORRELATION, "mode");
  if (!compute_dtype_of(compute))
    fail(CUDNN_STATUS_BAD_PARAM, "computeType: got {}, expected a cudnnDataType_t",
         static_cast<int>(compute));
  conv.padding = padding;
  conv.stride = stride;
  conv.dilation = dilation;
  conv.mode = mode;
  conv.compute = compute;
  conv.is_set = true;
}

}  // namespace

const cudnnConvolutionStruct& convolution_of(cudnnConvolutionDescriptor_t descriptor,
                                             const char* parameter) {
  return set_object(descriptor, parameter);
}

ConvAttributes attributes_of(const cudnnConvolutionStruct& conv) {
  ConvAttributes attributes;
  attributes.padding = conv.padding;
  attributes.stride = conv.stride;
  attributes.dilation = conv.dilation;
  attributes.mode =
      conv.mode == CUDNN_CONVOLUTION ? ConvMode::convolution : ConvMode::cross_correlation;
  return attributes;
}

Dims forward_dims(const cudnnConvolutionStruct& conv, const TensorSpec& x, const char* x_name,
                  const TensorSpec& w, const char* w_name) {
  const int rank = conv.padding.rank() + kBatchAndChannels;
  if (x.dims.rank() != rank)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.nbDims: got {}, expected {} as convDesc has {} spatial axes",
         x_name, x.dims.rank(), rank, conv.padding.rank());
  if (w.dims.rank() != rank)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.nbDims: got {}, expected {} as convDesc has {} spatial axes",
         w_name, w.dims.rank(), rank, conv.padding.rank());
  if (w.dims[1] * conv.groups != x.dims[1])
    fail(CUDNN_STATUS_BAD_PARAM,
         "{}.dims[1]: got {}, expected the {} channels of {} divided by the {} groups of convDesc",
         w_name, w.dims[1], x.dims[1], x_name, conv.groups);
  if (w.dims[0] % conv.groups != 0)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims[0]: got {}, expected a multiple of the {} groups", w_name,
         w.dims[0], conv.groups);
  Dims dims = {x.dims[0], w.dims[0]};
  for (int axis = 0; axis < conv.padding.rank(); ++axis) {
    const std::int64_t window = (w.dims[axis + kBatchAndChannels] - 1) * conv.dilation[axis] + 1;
    const std::int64_t padded = x.dims[axis + kBatchAndChannels] + 2 * conv.padding[axis];
    if (window > padded)
      fail(CUDNN_STATUS_BAD_PARAM,
           "{}.dims[{}]: got a filter of {} with dilation, expected at most {}, the padded extent "
           "of {}",
           w_name, axis + kBatchAndChannels, window, padded, x_name);
    dims.push_back((padded - window) / conv.stride[axis] + 1);
  }
  return dims;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Dims;

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv) {
  return guarded_legacy(__func__, [&] { create_object(conv, "convDesc"); });
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) {
  return guarded_legacy(__func__, [&] { destroy_object(conv, "convDesc"); });
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  return guarded_legacy(__func__, [&] {
    set(object(conv, "convDesc"), {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w},
        mode, compute);
  });
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int* pad_h,
                                              int* pad_w, int* stride_h, int* stride_w,
                                              int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute) {
  return guarded_legacy(__func__, [&] {
    const auto& fields = convolution_of(conv, "convDesc");
    if (fields.padding.rank() != kImageRank - kBatchAndChannels)
      fail(CUDNN_STATUS_BAD_PARAM, "convDesc: got {} spatial axes, expected 2",
           fields.padding.rank());
    *required(pad_h, "pad_h") = to_int(fields.padding[0], "pad_h");
    *required(pad_w, "pad_w") = to_int(fields.padding[1], "pad_w");
    *required(stride_h, "u") = to_int(fields.stride[0], "u");
    *required(stride_w, "v") = to_int(fields.stride[1], "v");
    *required(dilation_h, "dilation_h") = to_int(fields.dilation[0], "dilation_h");
    *required(dilation_w, "dilation_w") = to_int(fields.dilation[1], "dilation_w");
    *required(mode, "mode") = fields.mode;
    *required(compute, "computeType") = fields.compute;
  });
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv, int spatial_rank,
                                              const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  return guarded_legacy(__func__, [&] {
    auto& fields = object(conv, "convDesc");
    if (spatial_rank < 1)
      fail(CUDNN_STATUS_BAD_PARAM, "arrayLength: got {}, expected at least 1", spatial_rank);
    if (spatial_rank > CUDNN_DIM_MAX - kBatchAndChannels)
      fail(CUDNN_STATUS_NOT_SUPPORTED, "arrayLength: got {}, expected at most {}", spatial_rank,
           CUDNN_DIM_MAX - kBatchAndChannels);
    set(fields, dims_of(spatial_rank, pads, "padA"),
        dims_of(spatial_rank, strides, "filterStrideA"),
        dims_of(spatial_rank, dilations, "dilationA"), mode, compute);
  });
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv, int capacity,
                                              int* spatial_rank, int pads[], int strides[],
                                              int dilations[], cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute) {
  return guarded_legacy(__func__, [&] {
    const auto& fields = convolution_of(conv, "convDesc");
    copy_out(fields.padding, capacity, pads, "padA");
    copy_out(fields.stride, capacity, strides, "strideA");
    copy_out(fields.dilation, capacity, dilations, "dilationA");
    // Entries beyond the descriptor's spatial axes are 0.
    for (int axis = fields.padding.rank(); axis < std::min(capacity, CUDNN_DIM_MAX - 2); ++axis)
      pads[axis] = strides[axis] = dilations[axis] = 0;
    *required(spatial_rank, "arrayLength") = fields.padding.rank();
    *required(mode, "mode") = fields.mode;
    *required(compute, "computeType") = fields.compute;
  });
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  return guarded_legacy(__func__, [&] {
    auto& fields = object(conv, "convDesc");
    if (groups < 1) fail(CUDNN_STATUS_BAD_PARAM, "groupCount: got {}, expected at least 1", groups);
    fields.groups = groups;
  });
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int* groups) {
  return guarded_legacy(__func__,
                        [&] { *required(groups, "groupCount") = object(conv, "convDesc").groups; });
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math) {
  return guarded_legacy(__func__, [&] {
    auto& fields = object(conv, "convDesc");
    fields.math = require_enum(math, CUDNN_FMA_MATH, "mathType");
  });
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                          cudnnMathType_t* math) {
  return guarded_legacy(__func__,
                        [&] { *required(math, "mathType") = object(conv, "convDesc").math; });
}

cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                             cudnnReorderType_t reordering) {
  return guarded_legacy(__func__, [&] {
    auto& fields = object(conv, "convDesc");
    fields.reordering = require_enum(reordering, CUDNN_NO_REORDER, "reorderType");
  });
}

cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                             cudnnReorderType_t* reordering) {
  return guarded_legacy(__func__, [&] {
    *required(reordering, "reorderType") = object(conv, "convDesc").reordering;
  });
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t conv,
                                                    cudnnTensorDescriptor_t x_desc,
                                                    cudnnFilterDescriptor_t w_desc, int* n, int* c,
                                                    int* h, int* w) {
  return guarded_legacy(__func__, [&] {
    const auto& fields = convolution_of(conv, "convDesc");
    const Dims dims = forward_dims(fields, spec_of(x_desc, "inputTensorDesc"), "inputTensorDesc",
                                   spec_of(w_desc, "filterDesc"), "filterDesc");
    if (dims.rank() != kImageRank)
      fail(CUDNN_STATUS_BAD_PARAM, "inputTensorDesc.nbDims: got {}, expected 4", dims.rank());
    *required(n, "n") = to_int(dims[0], "n");
    *required(c, "c") = to_int(dims[1], "c");
    *required(h, "h") = to_int(dims[2], "h");
    *required(w, "w") = to_int(dims[3], "w");
  });
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t conv,
                                                    cudnnTensorDescriptor_t x_desc,
                                                    cudnnFilterDescriptor_t w_desc, int rank,
                                                    int dims[]) {
  return guarded_legacy(__func__, [&] {
    const auto& fields = convolution_of(conv, "convDesc");
    const Dims result = forward_dims(fields, spec_of(x_desc, "inputTensorDesc"), "inputTensorDesc",
                                     spec_of(w_desc, "filterDesc"), "filterDesc");
    if (rank != result.rank())
      fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected {} as inputTensorDesc has", rank,
           result.rank());
    copy_out(result, rank, dims, "tensorOutputDimA");
  });
}
