// cudnnConvolutionBiasActivationForward(): y = activation(alpha1 * conv(x, w) + alpha2 * z + bias).
#include "legacy/activation.hpp"
#include "legacy/convolution_algorithms.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/host_scalar.hpp"
#include "legacy/reorder.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

struct FusedConvolution {
  Convolution conv;
  Activation activation;
  TensorSpec z, bias;
  double alpha1 = 1.0, alpha2 = 0.0;

  // The type of alpha1 and alpha2, and the compute type of the epilogue.
  DType scalar_type() const { return conv.y.dtype == f64 ? f64 : f32; }
  DType type() const { return conv.compute == f64 ? f64 : compute_of(conv.y.dtype); }
};

struct FusedMemory {
  ConvMemory conv;
  const void *z, *bias;
};

Value add_fused(Graph& graph, const FusedConvolution& fused) {
  const DType type = fused.type();
  const int rank = fused.conv.y.dims.rank();
  Value sum = add_convolution(graph, fused.conv);
  if (fused.alpha1 != 1.0)
    sum = binary(graph, PointwiseMode::mul, sum, graph.scalar("alpha1", fused.scalar_type(), rank),
                 type);
  if (fused.alpha2 != 0.0) {
    Value z = add_input(graph, "z", fused.z);
    if (fused.alpha2 != 1.0)
      z = binary(graph, PointwiseMode::mul, z, graph.scalar("alpha2", fused.scalar_type(), rank),
                 type);
    sum = binary(graph, PointwiseMode::add, sum, z, type);
  }
  const Value bias = fused.conv.is_reordered ? add_reordered_bias(graph, "bias", fused.bias.dtype,
                                                                  fused.bias.dims[1], rank)
                                             : add_input(graph, "bias", fused.bias);
  sum = binary(graph, PointwiseMode::add, sum, bias, type);
  return activated(graph, fused.activation, sum, type);
}

void run(cudnnHandle_t handle, const FusedConvolution& fused, ConvStrategy strategy,
         const FusedMemory& memory, void* workspace, std::size_t bytes) {
  Call call(handle, "convolution_bias_activation");
  add_to_key(call, fused.conv, strategy);
  call.key(fused.activation).key(fused.bias).key(fused.alpha1 != 1.0);
  call.key(fused.alpha2 != 0.0).key(fused.alpha2 != 1.0);
  if (fused.alpha2 != 0.0) call.key(fused.z);
  call.compile([&](Graph& graph) { add_output(graph, "y", add_fused(graph, fused), fused.conv.y); },
               options_of(fused.conv, strategy));
  if (!fits(call, workspace, bytes)) {
    run(handle, fused, within(strategy, workspace, bytes), memory, workspace, bytes);
    return;
  }
  const auto single = [](double number) { return static_cast<float>(number); };
  const float alpha1 = single(fused.alpha1), alpha2 = single(fused.alpha2);
  const bool is_double = fused.scalar_type() == f64;
  call.bind("x", memory.conv.x).bind("w", memory.conv.w).bind("y", memory.conv.y);
  call.bind("bias", memory.bias);
  if (fused.alpha1 != 1.0)
    call.bind("alpha1", is_double ? static_cast<const void*>(&fused.alpha1) : &alpha1);
  if (fused.alpha2 != 0.0) call.bind("z", memory.z);
  if (fused.alpha2 != 0.0 && fused.alpha2 != 1.0)
    call.bind("alpha2", is_double ? static_cast<const void*>(&fused.alpha2) : &alpha2);
  call.run(workspace, bytes);
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Dims;

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t conv_desc,
    cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t bytes, const void* alpha2,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnTensorDescriptor_t bias_desc,
    const void* bias, cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y_desc,
    void* y) {
  return guarded_legacy(__func__, [&] {
    FusedConvolution fused;
    fused.conv = make_convolution(ConvKind::forward, x_desc, w_desc, conv_desc, y_desc);
    fused.activation = activation_of(activation, "activationDesc");
    fused.bias = spec_of(bias_desc, "biasDesc");
    Dims per_channel = Dims::filled(fused.conv.y.dims.rank(), 1);
    per_channel[1] = fused.conv.y.dims[1];
    if (fused.bias.dims != per_channel)
      fail(CUDNN_STATUS_BAD_PARAM, "biasDesc.dims: got {}, expected {}, one per channel of yDesc",
           to_string(fused.bias.dims), to_string(per_channel));
    fused.alpha1 = read_host_scalar(required(alpha1, "alpha1"), fused.scalar_type());
    fused.alpha2 = read_host_scalar(required(alpha2, "alpha2"), fused.scalar_type());
    FusedMemory memory{
        {required(x, "x"), required(w, "w"), required(y, "y")}, z, required(bias, "bias")};
    if (fused.alpha2 != 0.0) {  // else z is not read and may be null
      fused.z = spec_of(z_desc, "zDesc");
      require_same_dims(fused.conv.y, "yDesc", fused.z, "zDesc");
      required(z, "z");
    }
    run(handle, fused, strategy_of(ConvKind::forward, algo), memory, workspace, bytes);
  });
}
