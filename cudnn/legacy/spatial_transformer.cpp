// cudnnSpatialTf*: affine sampling grids and bilinear sampling. Coordinates -1 and 1 are the
// centres of the corner elements; the x coordinate comes first.
#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnSpatialTransformerStruct {
  static constexpr const char* kTypeName = "cudnnSpatialTransformerDescriptor_t";
  bool is_set = false;
  ashlar::DType dtype = ashlar::f32;
  ashlar::Dims dims;  // of the output: [N, C, out...]
};

namespace ashlar::cudnn {

namespace {

constexpr int kLeastRank = 4, kMostRank = 5;

// The shapes of a transformer. The grid and the matrices theta are contiguous.
struct Transformer {
  DType dtype;
  Dims dims, size;
  TensorSpec grid, theta;

  explicit Transformer(cudnnSpatialTransformerDescriptor_t descriptor) {
    const cudnnSpatialTransformerStruct& fields = set_object(descriptor, "stDesc");
    dtype = fields.dtype;
    dims = fields.dims;
    const std::int64_t axes = dims.rank() - 2;
    Dims grid_dims = {dims[0]};
    for (int axis = 2; axis < dims.rank(); ++axis) {
      size.push_back(dims[axis]);
      grid_dims.push_back(dims[axis]);
    }
    grid_dims.push_back(axes);
    grid = packed(grid_dims);
    theta = packed({dims[0], axes, axes + 1});
  }

 private:
  TensorSpec packed(const Dims& of) const {
    TensorSpec spec;
    spec.dtype = dtype;
    spec.dims = of;
    spec.strides = row_major.strides_for(of);
    return spec;
  }
};

// Checks x and y, or their gradients, against the transformer.
void require_sampled(const Transformer& transformer, const TensorSpec& x, const char* x_name,
                     const TensorSpec& y, const char* y_name) {
  if (y.dims != transformer.dims)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {} as stDesc has", y_name,
         to_string(y.dims), to_string(transformer.dims));
  if (x.dims.rank() != y.dims.rank() || x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1])
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected the batch and channels of {} {}",
         x_name, to_string(x.dims), y_name, to_string(y.dims));
}

void generate(cudnnHandle_t handle, const Transformer& transformer, const void* theta, void* grid) {
  using Op = GridGeneratorForward;
  Call call(handle, "grid_generator_forward");
  call.key(transformer.grid);
  call.compile([&](Graph& graph) {
    Op op;
    op.size = transformer.size;
    const auto out =
        graph.apply(op, {{Op::theta, add_input(graph, "theta", transformer.theta)}}, {Op::grid});
    add_output(graph, "grid", out[Op::grid], transformer.grid);
  });
  call.bind("theta", theta).bind("grid", grid).run();
}

void generate_backward(cudnnHandle_t handle, const Transformer& transformer, const void* dgrid,
                       void* dtheta) {
  using Op = GridGeneratorBackward;
  Call call(handle, "grid_generator_backward");
  call.key(transformer.grid);
  call.compile([&](Graph& graph) {
    Op op;
    op.size = transformer.size;
    const auto out =
        graph.apply(op, {{Op::dgrid, add_input(graph, "dgrid", transformer.grid)}}, {Op::dtheta});
    add_output(graph, "dtheta", out[Op::dtheta], transformer.theta);
  });
  call.bind("dgrid", dgrid).bind("dtheta", dtheta).run();
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Graph;
using ashlar::GridSampleBackward;
using ashlar::GridSampleForward;

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t* transformer) {
  return guarded_legacy(__func__, [&] { create_object(transformer, "stDesc"); });
}

cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer) {
  return guarded_legacy(__func__, [&] { destroy_object(transformer, "stDesc"); });
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer, cudnnSamplerType_t sampler,
    cudnnDataType_t dtype, int rank, const int dims[]) {
  return guarded_legacy(__func__, [&] {
    cudnnSpatialTransformerStruct& descriptor = object(transformer, "stDesc");
    required(dims, "dimA");
    if (sampler != CUDNN_SAMPLER_BILINEAR)
      fail(CUDNN_STATUS_BAD_PARAM, "samplerType: got {}, expected CUDNN_SAMPLER_BILINEAR",
           static_cast<int>(sampler));
    if (rank < kLeastRank || rank > kMostRank)
      fail(CUDNN_STATUS_NOT_SUPPORTED, "nbDims: got {}, expected 4 or 5", rank);
    const ashlar::Dims extents = dims_of(rank, dims, "dimA");
    for (int axis = 0; axis < rank; ++axis)
      if (extents[axis] < 1)
        fail(CUDNN_STATUS_BAD_PARAM, "dimA[{}]: got {}, expected at least 1", axis, extents[axis]);
    descriptor.dtype = require_dtype(dtype, "dataType");
    descriptor.dims = extents;
    descriptor.is_set = true;
  });
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 cudnnSpatialTransformerDescriptor_t transformer,
                                                 const void* theta, void* grid) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    generate(handle, Transformer(transformer), required(theta, "theta"), required(grid, "grid"));
  });
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  cudnnSpatialTransformerDescriptor_t transformer,
                                                  const void* dgrid, void* dtheta) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    generate_backward(handle, Transformer(transformer), required(dgrid, "dgrid"),
                      required(dtheta, "dtheta"));
  });
}

cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t transformer,
                                           const void* alpha, cudnnTensorDescriptor_t x_desc,
                                           const void* x, const void* grid, const void* beta,
                                           cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Transformer transform(transformer);
    const TensorSpec from = spec_of(x_desc, "xDesc"), to = spec_of(y_desc, "yDesc");
    require_sampled(transform, from, "xDesc", to, "yDesc");
    required(x, "x"), required(grid, "grid"), required(y, "y");

    using Op = GridSampleForward;
    Call call(handle, "grid_sample_forward");
    call.key(transform.grid).key(from).key(to).blend(alpha, beta, to.dtype);
    call.compile([&](Graph& graph) {
      const auto out = graph.apply(Op{},
                                   {{Op::x, add_input(graph, "x", from)},
                                    {Op::grid, add_input(graph, "grid", transform.grid)}},
                                   {{Op::y, compute_of(to.dtype)}});
      call.output(graph, "y", out[Op::y], to);
    });
    call.bind("x", x).bind("grid", grid).bind("y", y).run();
  });
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t transformer,
                                            const void* alpha, cudnnTensorDescriptor_t x_desc,
                                            const void* x, const void* beta,
                                            cudnnTensorDescriptor_t dx_desc, void* dx,
                                            const void* alpha_dgrid,
                                            cudnnTensorDescriptor_t dy_desc, const void* dy,
                                            const void* grid, const void* beta_dgrid, void* dgrid) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Transformer transform(transformer);
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), dx_spec = spec_of(dx_desc, "dxDesc"),
                     dy_spec = spec_of(dy_desc, "dyDesc");
    require_sampled(transform, x_spec, "xDesc", dy_spec, "dyDesc");
    require_same_dims(x_spec, "xDesc", dx_spec, "dxDesc");
    required(x, "x"), required(dx, "dx"), required(dy, "dy"), required(grid, "grid");
    required(dgrid, "dgrid");

    using Op = GridSampleBackward;
    Call call(handle, "grid_sample_backward");
    call.key(transform.grid).key(x_spec).key(dx_spec).key(dy_spec);
    call.blend(alpha, beta, dx_spec.dtype).blend(alpha_dgrid, beta_dgrid, transform.dtype, 1);
    call.compile([&](Graph& graph) {
      const ashlar::DType compute = compute_of(dx_spec.dtype);
      const auto out = graph.apply(Op{},
                                   {{Op::x, add_input(graph, "x", x_spec)},
                                    {Op::grid, add_input(graph, "grid", transform.grid)},
                                    {Op::dy, add_input(graph, "dy", dy_spec)}},
                                   {{Op::dx, compute}, {Op::dgrid, compute}});
      call.output(graph, "dx", out[Op::dx], dx_spec);
      call.output(graph, "dgrid", out[Op::dgrid], transform.grid, 1);
    });
    call.bind("x", x).bind("grid", grid).bind("dy", dy).bind("dx", dx).bind("dgrid", dgrid).run();
  });
}
