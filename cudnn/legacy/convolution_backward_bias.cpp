// cudnnConvolutionBackwardBias(): the gradient of the bias, dy summed over all axes but the
// channels.
#include "legacy/call.hpp"
#include "legacy/tensor_descriptor.hpp"

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, cudnnTensorDescriptor_t db_desc,
                                           void* db) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec from = spec_of(dy_desc, "dyDesc"), to = spec_of(db_desc, "dbDesc");
    if (from.dims.rank() < 2)
      fail(CUDNN_STATUS_BAD_PARAM, "dyDesc.nbDims: got {}, expected at least 2", from.dims.rank());
    Dims expected = Dims::filled(from.dims.rank(), 1);
    expected[1] = from.dims[1];
    if (to.dims != expected)
      fail(CUDNN_STATUS_BAD_PARAM, "dbDesc.dims: got {}, expected {}, one per channel of dyDesc",
           to_string(to.dims), to_string(expected));
    Call call(handle, "convolution_backward_bias");
    call.key(from).key(to);
    call.blend(required(alpha, "alpha"), required(beta, "beta"), to.dtype);
    call.compile([&](Graph& graph) {
      Dims axes = {0};
      for (int axis = 2; axis < from.dims.rank(); ++axis) axes.push_back(axis);
      ashlar::OutputSpec sum;
      sum.dtype = sum.compute = from.dtype == ashlar::f64 ? ashlar::f64 : ashlar::f32;
      call.output(graph, "db",
                  graph.reduce(add_input(graph, "dy", from), ashlar::ReductionMode::add, axes, sum),
                  to);
    });
    call.bind("dy", required(dy, "dy")).bind("db", required(db, "db")).run();
  });
}
