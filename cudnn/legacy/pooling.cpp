// cudnnPooling*: max and average pooling.
#include <limits>

#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnPoolingStruct {
  static constexpr const char* kTypeName = "cudnnPoolingDescriptor_t";
  bool is_set = false;
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  ashlar::Dims window = {}, padding = {}, stride = {};  // one value per spatial axis
};

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::DType;
using ashlar::Graph;
using ashlar::OutputSpec;
using ashlar::ResampleAttributes;
using ashlar::ResampleMode;
using ashlar::Value;

namespace {

using Pooling = cudnnPoolingStruct;

bool is_max(const Pooling& pooling) {
  return pooling.mode == CUDNN_POOLING_MAX || pooling.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

ResampleAttributes attributes_of(const Pooling& pooling) {
  ResampleAttributes attributes;
  attributes.mode = is_max(pooling) ? ResampleMode::maxpool
                    : pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                        ? ResampleMode::avgpool_include_padding
                        : ResampleMode::avgpool_exclude_padding;
  attributes.window = pooling.window;
  attributes.padding = pooling.padding;
  attributes.stride = pooling.stride;
  return attributes;
}

void set(Pooling& pooling, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, const Dims& window,
         const Dims& padding, const Dims& stride) {
  require_enum(mode, CUDNN_POOLING_MAX_DETERMINISTIC, "mode");
  require_enum(nan, CUDNN_PROPAGATE_NAN, "maxpoolingNanOpt");
  for (int axis = 0; axis < window.rank(); ++axis) {
    if (window[axis] < 1 || stride[axis] < 1)
      fail(CUDNN_STATUS_BAD_PARAM,
           "window and stride of spatial axis {}: got {} and {}, expected at least 1", axis,
           window[axis], stride[axis]);
    if (padding[axis] < 0 || padding[axis] >= window[axis])
      fail(CUDNN_STATUS_BAD_PARAM, "padding of spatial axis {}: got {}, expected 0 to {}", axis,
           padding[axis], window[axis] - 1);
  }
  pooling.mode = mode;
  pooling.nan = nan;
  pooling.window = window;
  pooling.padding = padding;
  pooling.stride = stride;
  pooling.is_set = true;
}

Dims pooled_dims(const Pooling& pooling, const TensorSpec& x) {
  const int spatial = pooling.window.rank();
  if (x.dims.rank() != spatial + 2)
    fail(CUDNN_STATUS_BAD_PARAM, "inputDesc.nbDims: got {}, expected {} for windows of {} axes",
         x.dims.rank(), spatial + 2, spatial);
  Dims dims = {x.dims[0], x.dims[1]};
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t padded = x.dims[axis + 2] + 2 * pooling.padding[axis];
    if (padded < pooling.window[axis])
      fail(CUDNN_STATUS_BAD_PARAM,
           "window of spatial axis {}: got {}, expected at most {}, the padded extent", axis,
           pooling.window[axis], padded);
    dims.push_back((padded - pooling.window[axis]) / pooling.stride[axis] + 1);
  }
  return dims;
}

void require_pooled(const Pooling& pooling, const TensorSpec& x, const TensorSpec& y,
                    const char* parameter) {
  const Dims expected = pooled_dims(pooling, x);
  if (y.dims != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {}", parameter, to_string(y.dims),
         to_string(expected));
}

void add_pooling_to_key(Call& call, const Pooling& pooling) {
  call.key(attributes_of(pooling).mode).key(pooling.nan);
  call.key(pooling.window).key(pooling.padding).key(pooling.stride);
}

bool ignores_nan(const Pooling& pooling, const TensorSpec& x) {
  return is_max(pooling) && pooling.nan == CUDNN_NOT_PROPAGATE_NAN && !is_integer(x.dtype);
}

// The input of max pooling: without NaN propagation, NaN becomes -inf.
Value pooling_input(Graph& graph, const Pooling& pooling, const TensorSpec& spec, DType type) {
  const Value x = add_input(graph, "x", spec);
  if (!ignores_nan(pooling, spec)) return x;
  const double lowest = -std::numeric_limits<double>::infinity();
  return without_nan(graph, x, constant_like(graph, lowest, x, type), type);
}

// The indices of the maxima, ignoring NaN. NaN is replaced while x is read, so that no copy of x is
// written to memory.
Value maximum_index(Graph& graph, const Pooling& pooling, const TensorSpec& spec, DType type) {
  using ashlar::ResampleForward;
  ResampleForward forward;
  static_cast<ResampleAttributes&>(forward) = attributes_of(pooling);
  const DType index = element_count(pooling.window) <= 256 ? ashlar::u8 : ashlar::i32;
  OutputSpec maxima = in(type);
  maxima.dtype = spec.dtype;
  return graph.apply(forward, {{ResampleForward::x, pooling_input(graph, pooling, spec, type)}},
                     {ResampleForward::y, {ResampleForward::index, index}},
                     maxima)[ResampleForward::index];
}

}  // namespace

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling) {
  return guarded_legacy(__func__, [&] { create_object(pooling, "poolingDesc"); });
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_h, int window_w,
                                          int pad_h, int pad_w, int stride_h, int stride_w) {
  return guarded_legacy(__func__, [&] {
    set(object(pooling, "poolingDesc"), mode, nan, {window_h, window_w}, {pad_h, pad_w},
        {stride_h, stride_w});
  });
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int rank, const int window[],
                                          const int pads[], const int strides[]) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(pooling, "poolingDesc");
    if (rank < 1 || rank > CUDNN_DIM_MAX - 2)
      fail(CUDNN_STATUS_NOT_SUPPORTED, "nbDims: got {}, expected 1 to {}", rank, CUDNN_DIM_MAX - 2);
    set(descriptor, mode, nan, dims_of(rank, window, "windowDimA"), dims_of(rank, pads, "paddingA"),
        dims_of(rank, strides, "strideA"));
  });
}

cudnnStatus_t cudnnGetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* window_h, int* window_w, int* pad_h, int* pad_w,
                                          int* stride_h, int* stride_w) {
  return guarded_legacy(__func__, [&] {
    const Pooling& fields = set_object(pooling, "poolingDesc");
    if (fields.window.rank() != 2)
      fail(CUDNN_STATUS_BAD_PARAM, "poolingDesc.nbDims: got {}, expected 2", fields.window.rank());
    *required(mode, "mode") = fields.mode;
    *required(nan, "maxpoolingNanOpt") = fields.nan;
    *required(window_h, "windowHeight") = to_int(fields.window[0], "windowHeight");
    *required(window_w, "windowWidth") = to_int(fields.window[1], "windowWidth");
    *required(pad_h, "verticalPadding") = to_int(fields.padding[0], "verticalPadding");
    *required(pad_w, "horizontalPadding") = to_int(fields.padding[1], "horizontalPadding");
    *required(stride_h, "verticalStride") = to_int(fields.stride[0], "verticalStride");
    *required(stride_w, "horizontalStride") = to_int(fields.stride[1], "horizontalStride");
  });
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling, int capacity,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* rank, int window[], int pads[], int strides[]) {
  return guarded_legacy(__func__, [&] {
    const Pooling& fields = set_object(pooling, "poolingDesc");
    copy_out(fields.window, capacity, window, "windowDimA");
    copy_out(fields.padding, capacity, pads, "paddingA");
    copy_out(fields.stride, capacity, strides, "strideA");
    *required(mode, "mode") = fields.mode;
    *required(nan, "maxpoolingNanOpt") = fields.nan;
    *required(rank, "nbDims") = fields.window.rank();
  });
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                cudnnTensorDescriptor_t x_desc, int rank,
                                                int dims[]) {
  return guarded_legacy(__func__, [&] {
    const Pooling& fields = set_object(pooling, "poolingDesc");
    const Dims pooled = pooled_dims(fields, spec_of(x_desc, "inputDesc"));
    if (rank != pooled.rank())
      fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected {}", rank, pooled.rank());
    copy_out(pooled, rank, dims, "outDimA");
  });
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                cudnnTensorDescriptor_t x_desc, int* n, int* c,
                                                int* h, int* w) {
  return guarded_legacy(__func__, [&] {
    const Pooling& fields = set_object(pooling, "poolingDesc");
    const Dims pooled = pooled_dims(fields, spec_of(x_desc, "inputDesc"));
    if (pooled.rank() != 4)
      fail(CUDNN_STATUS_BAD_PARAM, "inputDesc.nbDims: got {}, expected 4", pooled.rank());
    *required(n, "outN") = to_int(pooled[0], "outN");
    *required(c, "outC") = to_int(pooled[1], "outC");
    *required(h, "outH") = to_int(pooled[2], "outH");
    *required(w, "outW") = to_int(pooled[3], "outW");
  });
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling) {
  return guarded_legacy(__func__, [&] { destroy_object(pooling, "poolingDesc"); });
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
                                  const void* beta, cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "pooling_forward");
    const Pooling how = set_object(pooling, "poolingDesc");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_pooled(how, x_spec, y_spec, "yDesc");
    required(x, "x");
    required(y, "y");
    add_pooling_to_key(call, how);
    call.key(x_spec).key(y_spec).blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const DType type = compute_of(x_spec.dtype);
      const Value input = pooling_input(graph, how, x_spec, type);
      call.output(graph, "y", graph.resample(input, attributes_of(how), in(type)), y_spec);
    });
    call.bind("x", x).bind("y", y).run();
  });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, cudnnTensorDescriptor_t y_desc, const void* y,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dx_desc, void* dx) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "pooling_backward");
    const Pooling how = set_object(pooling, "poolingDesc");
    const TensorSpec y_spec = spec_of(y_desc, "yDesc"), dy_spec = spec_of(dy_desc, "dyDesc"),
                     x_spec = spec_of(x_desc, "xDesc"), dx_spec = spec_of(dx_desc, "dxDesc");
    require_same_dims(x_spec, "xDesc", dx_spec, "dxDesc");
    require_pooled(how, x_spec, y_spec, "yDesc");
    require_pooled(how, x_spec, dy_spec, "dyDesc");
    required(y, "y");
    required(dy, "dy");
    required(x, "x");
    required(dx, "dx");
    add_pooling_to_key(call, how);
    call.key(x_spec).key(dy_spec).key(dx_spec).blend(alpha, beta, dx_spec.dtype);
    call.compile([&](Graph& graph) {
      const DType type = compute_of(dx_spec.dtype);
      Value input, index;
      if (ignores_nan(how, x_spec))
        index = maximum_index(graph, how, x_spec, type);
      else if (is_max(how))
        input = pooling_input(graph, how, x_spec, type);
      OutputSpec result = in(type);
      result.dims = dx_spec.dims;
      const Value gradient = graph.resample_backward(add_input(graph, "dy", dy_spec),
                                                     attributes_of(how), result, input, index);
      call.output(graph, "dx", gradient, dx_spec);
    });
    if (is_max(how)) call.bind("x", x);
    call.bind("dy", dy).bind("dx", dx).run();
  });
}
