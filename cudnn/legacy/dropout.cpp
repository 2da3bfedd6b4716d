#include "legacy/dropout.hpp"

#include <ashlar/device.hpp>

#include "legacy/call.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr int kDrawsPerOffset = 4;

void set(cudnnDropoutStruct& dropout, float probability, void* states, std::size_t bytes,
         unsigned long long seed) {
  if (!(probability >= 0.0F && probability <= 1.0F))
    fail(CUDNN_STATUS_BAD_PARAM, "dropout: got {}, expected 0 to 1", probability);
  if (states != nullptr && bytes < kDropoutStatesBytes)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
         "stateSizeInBytes: got {}, expected {} (cudnnDropoutGetStatesSize)", bytes,
         kDropoutStatesBytes);
  dropout.probability = probability;
  dropout.states = states;
  dropout.seed = seed;
  dropout.is_set = true;
}

// One bit per element: 1 if it was kept.
std::size_t mask_bytes(const TensorSpec& x) {
  return round_up_to_words((element_count(x.dims) + 7) / 8);
}

// The shapes of x, y and the mask. They are flattened to one axis when both tensors are contiguous
// with the same axis order.
struct Shapes {
  TensorSpec from, to;
  Shapes(TensorSpec source, TensorSpec result) : from(source), to(result) {
    const std::int64_t count = element_count(from.dims);
    const bool is_gapless =
        byte_size(from) == (count * bit_width(from.dtype) + 7) / 8 && from.vector == 1;
    if (from.strides != to.strides || !is_gapless) return;
    from.dims = to.dims = {count};
    from.strides = to.strides = {1};
  }
};

Shapes require_shapes(const TensorSpec& from, const char* from_name, const TensorSpec& to,
                      const char* to_name) {
  require_same_dims(from, from_name, to, to_name);
  require_same_dtype(from, from_name, to, to_name);
  return {from, to};
}

void require_reserve(const void* reserve, std::size_t bytes, const TensorSpec& x) {
  required(reserve, "reserveSpace");
  if (bytes < mask_bytes(x))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
         "reserveSpaceSizeInBytes: got {}, expected {} (cudnnDropoutGetReserveSpaceSize)", bytes,
         mask_bytes(x));
}

void forward(cudnnHandle_t handle, const cudnnDropoutStruct& dropout, const Shapes& shapes,
             const void* x, void* y, void* mask) {
  using Op = ashlar::DropoutForward;
  Call call(handle, "dropout_forward");
  call.key(shapes.from).key(shapes.to).key(dropout.probability).key(draws(dropout));
  call.compile([&](Graph& graph) {
    Op op;
    op.probability = static_cast<double>(dropout.probability);
    std::vector<Operand<Op>> operands = {{Op::x, add_input(graph, "x", shapes.from)}};
    if (draws(dropout)) {
      operands.push_back({Op::seed_tensor, graph.input("seed", {1}, i64)});
      operands.push_back({Op::offset_tensor, graph.input("offset", {1}, i64)});
    }
    const auto out = graph.apply(op, operands, {Op::y, Op::mask});
    add_output(graph, "y", out[Op::y], shapes.to);
    graph.output("mask", out[Op::mask]);
  });
  call.bind("x", x).bind("y", y).bind("mask", mask);
  if (draws(dropout))
    call.bind("seed", state_of(dropout).seed).bind("offset", state_of(dropout).offset);
  call.run();
  if (draws(dropout)) advance(handle, dropout, element_count(shapes.from.dims));
}

void backward(cudnnHandle_t handle, const cudnnDropoutStruct& dropout, const Shapes& shapes,
              const void* dy, void* dx, const void* mask) {
  using Op = ashlar::DropoutBackward;
  Call call(handle, "dropout_backward");
  call.key(shapes.from).key(shapes.to).key(dropout.probability);
  call.compile([&](Graph& graph) {
    Op op;
    op.probability = static_cast<double>(dropout.probability);
    const Value gradient = add_input(graph, "dy", shapes.from);
    const Value kept = graph.input("mask", shapes.from.dims, boolean);
    const auto out = graph.apply(op, {{Op::dy, gradient}, {Op::mask, kept}}, {Op::dx});
    add_output(graph, "dx", out[Op::dx], shapes.to);
  });
  call.bind("dy", dy).bind("mask", mask).bind("dx", dx).run();
}

}  // namespace

const cudnnDropoutStruct& dropout_of(cudnnDropoutDescriptor_t descriptor, const char* parameter) {
  return set_object(descriptor, parameter);
}

bool draws(const cudnnDropoutStruct& dropout) {
  return dropout.probability > 0.0F && dropout.probability < 1.0F;
}

DropoutState state_of(const cudnnDropoutStruct& dropout) {
  auto* states = static_cast<std::int64_t*>(dropout.states);
  if (states == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
         "dropoutDesc.states: got null, expected device memory because the dropout probability is "
         "{}",
         dropout.probability);
  return {states, states + 1};
}

void advance(cudnnHandle_t handle, const cudnnDropoutStruct& dropout, std::int64_t elements) {
  Call call(handle, "dropout_advance");
  call.compile([](Graph& graph) {
    const Value offset = graph.input("offset", {1}, i64);
    graph.output("next", offset + graph.scalar("step", i64, 1));
  });
  const std::int64_t step = (elements + kDrawsPerOffset - 1) / kDrawsPerOffset;
  void* offset = state_of(dropout).offset;  // one element, read before it is written
  call.bind("offset", offset).bind("step", &step).bind("next", offset).run();
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  return guarded_legacy(__func__, [&] { create_object(dropout, "dropoutDesc"); });
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return guarded_legacy(__func__, [&] { destroy_object(dropout, "dropoutDesc"); });
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    *required(bytes, "sizeInBytes") = kDropoutStatesBytes;
  });
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x_desc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    required(bytes, "sizeInBytes");
    *bytes = mask_bytes(spec_of(x_desc, "xDesc"));
  });
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float probability, void* states, size_t states_bytes,
                                        unsigned long long seed) {
  return guarded_legacy(__func__, [&] {
    cudnnDropoutStruct& descriptor = object(dropout, "dropoutDesc");
    const cudnnContext& context = object(handle, "handle");
    set(descriptor, probability, states, states_bytes, seed);
    const std::int64_t start[] = {static_cast<std::int64_t>(seed), 0};
    static_assert(sizeof(start) == kDropoutStatesBytes);
    if (states != nullptr) context.device.upload(states, start, sizeof(start), context.stream);
  });
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                            float probability, void* states, size_t states_bytes,
                                            unsigned long long seed) {
  return guarded_legacy(__func__, [&] {
    cudnnDropoutStruct& descriptor = object(dropout, "dropoutDesc");
    object(handle, "handle");
    set(descriptor, probability, states, states_bytes, seed);
  });
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float* probability, void** states,
                                        unsigned long long* seed) {
  return guarded_legacy(__func__, [&] {
    const cudnnDropoutStruct& descriptor = dropout_of(dropout, "dropoutDesc");
    object(handle, "handle");
    if (probability != nullptr) *probability = descriptor.probability;
    if (states != nullptr) *states = descriptor.states;
    if (seed != nullptr) *seed = descriptor.seed;
  });
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout,
                                  cudnnTensorDescriptor_t x_desc, const void* x,
                                  cudnnTensorDescriptor_t y_desc, void* y, void* reserve,
                                  size_t reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnDropoutStruct& descriptor = dropout_of(dropout, "dropoutDesc");
    const TensorSpec from = spec_of(x_desc, "xDesc"), to = spec_of(y_desc, "yDesc");
    const Shapes shapes = require_shapes(from, "xDesc", to, "yDesc");
    require_reserve(reserve, reserve_bytes, from);
    forward(handle, descriptor, shapes, required(x, "x"), required(y, "y"), reserve);
  });
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   cudnnTensorDescriptor_t dx_desc, void* dx, void* reserve,
                                   size_t reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnDropoutStruct& descriptor = dropout_of(dropout, "dropoutDesc");
    const TensorSpec from = spec_of(dy_desc, "dydesc"), to = spec_of(dx_desc, "dxdesc");
    const Shapes shapes = require_shapes(from, "dydesc", to, "dxdesc");
    require_reserve(reserve, reserve_bytes, from);
    backward(handle, descriptor, shapes, required(dy, "dy"), required(dx, "dx"), reserve);
  });
}
