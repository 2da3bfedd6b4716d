// cudnnSoftmax*: over the channels of each pixel, or over all elements of a sample.
#include <array>
#include <limits>

#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::DType;
using ashlar::Graph;
using ashlar::PointwiseMode;
using ashlar::SoftmaxAttributes;
using ashlar::Value;

namespace {

// The tensors of a call, all with the same dims, and the softmax axis.
struct Softmax {
  bool over_sample;      // else over axis 1
  bool has_masked_rows;  // a row may be all -inf
  SoftmaxAttributes attributes;

  Softmax(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, const Dims& dims) {
    require_enum(algorithm, CUDNN_SOFTMAX_LOG, "algo");
    require_enum(mode, CUDNN_SOFTMAX_MODE_CHANNEL, "mode");
    if (dims.rank() < 2)
      fail(CUDNN_STATUS_BAD_PARAM, "xDesc.nbDims: got {}, expected at least 2", dims.rank());
    // FAST may skip the subtraction of the maximum; this implementation always subtracts it.
    has_masked_rows = algorithm != CUDNN_SOFTMAX_FAST;
    attributes.log = algorithm == CUDNN_SOFTMAX_LOG;
    attributes.axis = 1;
    over_sample = mode == CUDNN_SOFTMAX_MODE_INSTANCE;
    bool has_spatial_axes = false;
    for (int axis = 2; axis < dims.rank(); ++axis) has_spatial_axes |= dims[axis] > 1;
    if (!has_spatial_axes) over_sample = false;  // equivalent, and needs no reshape
  }

  Value rows(Graph& graph, Value tensor) const {
    return over_sample ? graph.reshape(tensor, {tensor.dims()[0], -1}) : tensor;
  }
  // Softmax along rows. A row that is all -inf gives probabilities of 0; with FAST it gives NaN.
  Value of(Graph& graph, Value rows, DType type) const {
    const Value result = graph.softmax(rows, attributes, in(type));
    if (!has_masked_rows) return result;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Value is_masked = graph.pointwise(
        PointwiseMode::cmp_eq, std::array{rows, constant_like(graph, -kInfinity, rows, type)});
    const Value nothing = constant_like(graph, attributes.log ? -kInfinity : 0.0, rows, type);
    return select(graph, is_masked, nothing, result, type);
  }
  Value whole(Graph& graph, Value rows, const Dims& dims) const {
    return over_sample ? graph.reshape(rows, dims) : rows;
  }
};

// One sample of a tensor.
TensorSpec first_sample(TensorSpec spec) {
  spec.dims[0] = spec.strides[0] = 1;
  return spec;
}

// Whether the samples of all tensors are contiguous and in the same element order, so that each is
// a row of memory.
bool are_sample_rows(std::initializer_list<const TensorSpec*> specs) {
  const Dims order = first_sample(**specs.begin()).strides;
  for (const TensorSpec* spec : specs) {
    const TensorSpec sample = first_sample(*spec);
    const bool has_gaps =
        byte_size(sample) * 8 != element_count(sample.dims) * bit_width(sample.dtype);
    if (spec->vector != 1 || sample.strides != order || has_gaps) return false;
  }
  return true;
}

TensorSpec sample_rows(TensorSpec spec) {
  const std::int64_t sample = element_count(spec.dims) / spec.dims[0];
  spec.strides = {spec.strides[0], 1};
  spec.dims = {spec.dims[0], sample};
  return spec;
}

}  // namespace

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "softmax_forward");
    TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    Softmax softmax(algo, mode, x_spec.dims);
    required(x, "x");
    required(y, "y");
    if (softmax.over_sample && are_sample_rows({&x_spec, &y_spec})) {
      x_spec = sample_rows(x_spec);
      y_spec = sample_rows(y_spec);
      softmax.over_sample = false;
    }
    call.key(softmax.over_sample).key(softmax.has_masked_rows).key(softmax.attributes.log);
    call.key(x_spec).key(y_spec);
    call.blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value rows = softmax.rows(graph, add_input(graph, "x", x_spec));
      const Value result = softmax.of(graph, rows, compute_of(x_spec.dtype));
      call.output(graph, "y", softmax.whole(graph, result, y_spec.dims), y_spec);
    });
    call.bind("x", x).bind("y", y).run();
  });
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   cudnnTensorDescriptor_t y_desc, const void* y,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "softmax_backward");
    TensorSpec y_spec = spec_of(y_desc, "yDesc"), dy_spec = spec_of(dy_desc, "dyDesc"),
               dx_spec = spec_of(dx_desc, "dxDesc");
    require_same_dims(y_spec, "yDesc", dy_spec, "dyDesc");
    require_same_dims(y_spec, "yDesc", dx_spec, "dxDesc");
    Softmax softmax(algo, mode, y_spec.dims);
    required(y, "y");
    required(dy, "dy");
    required(dx, "dx");
    if (softmax.over_sample && are_sample_rows({&y_spec, &dy_spec, &dx_spec})) {
      for (TensorSpec* spec : {&y_spec, &dy_spec, &dx_spec}) *spec = sample_rows(*spec);
      softmax.over_sample = false;
    }
    call.key(softmax.over_sample).key(softmax.attributes.log);
    call.key(y_spec).key(dy_spec).key(dx_spec).blend(alpha, beta, dx_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value result = softmax.rows(graph, add_input(graph, "y", y_spec));
      const Value gradient = softmax.rows(graph, add_input(graph, "dy", dy_spec));
      const Value rows = graph.softmax_backward(result, gradient, softmax.attributes,
                                                in(compute_of(y_spec.dtype)));
      call.output(graph, "dx", softmax.whole(graph, rows, dx_spec.dims), dx_spec);
    });
    call.bind("y", y).bind("dy", dy).bind("dx", dx).run();
  });
}
