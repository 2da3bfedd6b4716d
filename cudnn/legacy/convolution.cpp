#include "legacy/convolution.hpp"

#include "core/data_type.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/reorder.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr std::uintptr_t kWorkspaceAlignment = 64;  // bytes, as plans require
constexpr int kMaxSpatialAxes = 3;

struct Names {
  const char *x, *w, *y;
};
Names names_of(ConvKind kind) {
  switch (kind) {
    case ConvKind::forward: return {"xDesc", "wDesc", "yDesc"};
    case ConvKind::backward_data: return {"dxDesc", "wDesc", "dyDesc"};
    case ConvKind::backward_filter: return {"xDesc", "dwDesc", "dyDesc"};
  }
  return {};
}

// Half-precision accumulation is replaced by f32: the results are only more accurate.
DType compute_type_for(cudnnDataType_t requested, const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype == f64 || b.dtype == f64 || requested == CUDNN_DATA_DOUBLE) return f64;
  if (!is_integer(a.dtype) || !is_integer(b.dtype)) return f32;
  return a.dtype == i64 || b.dtype == i64 ? i64 : i32;
}

bool is_usable(const void* workspace) {
  return workspace != nullptr &&
         reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment == 0;
}

}  // namespace

Convolution make_convolution(ConvKind kind, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                             cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y) {
  const Names names = names_of(kind);
  const cudnnConvolutionStruct& requested = convolution_of(conv, "convDesc");
  return make_convolution(kind, spec_of(x, names.x), spec_of(w, names.w), requested,
                          spec_of(y, names.y));
}

Convolution make_convolution(ConvKind kind, const TensorSpec& x, const TensorSpec& w,
                             const cudnnConvolutionStruct& requested, const TensorSpec& y) {
  const Names names = names_of(kind);
  Convolution result;
  result.kind = kind;
  result.x = x;
  result.w = w;
  result.y = y;
  if (requested.padding.rank() > kMaxSpatialAxes)
    fail(CUDNN_STATUS_NOT_SUPPORTED, "convDesc: got {} spatial axes, expected at most {}",
         requested.padding.rank(), kMaxSpatialAxes);
  const Dims expected = forward_dims(requested, result.x, names.x, result.w, names.w);
  if (result.y.dims != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {} from {}, {} and convDesc", names.y,
         to_string(result.y.dims), to_string(expected), names.x, names.w);
  result.attributes = attributes_of(requested);
  result.compute =
      kind == ConvKind::forward         ? compute_type_for(requested.compute, result.x, result.w)
      : kind == ConvKind::backward_data ? compute_type_for(requested.compute, result.y, result.w)
                                        : compute_type_for(requested.compute, result.x, result.y);
  result.allow_tf32 = requested.math != CUDNN_FMA_MATH;
  result.math = requested.math;
  result.is_reordered = kind == ConvKind::forward && requested.reordering == CUDNN_NO_REORDER &&
                        is_reorderable(result.w);
  return result;
}

CompileOptions options_of(const Convolution& conv, ConvStrategy strategy) {
  CompileOptions options;
  options.allow_tf32 = conv.allow_tf32;
  options.allow_winograd = strategy.allows_winograd;
  options.workspace_limit = strategy.workspace_limit;
  return options;
}

void add_to_key(Call& call, const Convolution& conv, ConvStrategy strategy) {
  call.key(conv.kind).key(conv.x).key(conv.w).key(conv.y);
  call.key(conv.attributes.padding).key(conv.attributes.stride).key(conv.attributes.dilation);
  call.key(conv.attributes.mode).key(conv.compute).key(conv.allow_tf32).key(conv.is_reordered);
  call.key(strategy.workspace_limit).key(strategy.allows_winograd);
}

Value convolved(Graph& graph, const Convolution& conv, Value a, Value b) {
  OutputSpec in_compute;
  in_compute.dtype = in_compute.compute = conv.compute;
  in_compute.dims = conv.result().dims;
  if (conv.result().vector == 1) in_compute.layout = Layout(conv.result().strides);
  switch (conv.kind) {
    case ConvKind::forward: return graph.conv(a, b, conv.attributes, in_compute);
    case ConvKind::backward_data:
      return graph.conv_backward_data(a, b, conv.attributes, in_compute);
    case ConvKind::backward_filter:
      return graph.conv_backward_filter(a, b, conv.attributes, in_compute);
  }
  return {};
}

Value add_convolution(Graph& graph, const Convolution& conv) {
  const bool reads_x = conv.kind != ConvKind::backward_data;
  const Value a = reads_x ? add_input(graph, "x", conv.x) : add_input(graph, "y", conv.y);
  const Value b = conv.kind == ConvKind::backward_filter ? add_input(graph, "y", conv.y)
                  : conv.is_reordered                    ? add_reordered_filter(graph, "w", conv.w)
                                                         : add_input(graph, "w", conv.w);
  return convolved(graph, conv, a, b);
}

bool fits(const Call& call, const void* workspace, std::size_t bytes) {
  const auto needed = static_cast<std::size_t>(call.workspace_size());
  return needed == 0 || (needed <= bytes && is_usable(workspace));
}

ConvStrategy within(ConvStrategy strategy, const void* workspace, std::size_t bytes) {
  strategy.workspace_limit = is_usable(workspace) ? static_cast<std::int64_t>(bytes) : 0;
  return strategy;
}

ConvolutionCall::ConvolutionCall(cudnnHandle_t handle, const Convolution& conv,
                                 ConvStrategy strategy, const void* alpha, const void* beta)
    : call_(handle, "convolution") {
  add_to_key(call_, conv, strategy);
  call_.blend(alpha, beta, conv.result().dtype);
  call_.compile(
      [&](Graph& graph) {
        call_.output(graph, "result", add_convolution(graph, conv), conv.result());
      },
      options_of(conv, strategy));
}

void ConvolutionCall::bind(const ConvMemory& memory) {
  // The call's output is bound in the slot of the operand that this kind does not read.
  const Graph& graph = call_.plan().graph();
  for (const auto& [name, pointer] : {std::pair{"x", memory.x}, {"w", memory.w}, {"y", memory.y}})
    call_.bind(graph.find_tensor(name) != kNoTensor ? name : "result", pointer);
}

void run_convolution(cudnnHandle_t handle, const Convolution& conv, ConvStrategy strategy,
                     const void* alpha, const void* beta, const ConvMemory& memory, void* workspace,
                     std::size_t bytes) {
  ConvolutionCall call(handle, conv, strategy, required(alpha, "alpha"), required(beta, "beta"));
  if (!fits(call.call(), workspace, bytes)) {
    run_convolution(handle, conv, within(strategy, workspace, bytes), alpha, beta, memory,
                    workspace, bytes);
    return;
  }
  call.bind(memory);
  call.run(workspace, bytes);
}

}  // namespace ashlar::cudnn
