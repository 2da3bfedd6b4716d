// Bad calls of cudnnBackendSetAttribute() and cudnnBackendGetAttribute().
#include <limits>

#include "cudnn/bad_calls.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

namespace {

using Attribute = cudnnBackendAttributeName_t;
using Owner = cudnnBackendDescriptorType_t;

// Sets one attribute of a new descriptor.
std::function<cudnnStatus_t()> set(Owner owner, Attribute name, const Values& values) {
  return [=] { return ScopedDescriptor(owner).set(name, values); };
}
std::function<cudnnStatus_t()> set(Owner owner, Attribute name, cudnnBackendAttributeType_t type,
                                   std::int64_t count, const void* elements) {
  return [=] {
    return cudnnBackendSetAttribute(ScopedDescriptor(owner), name, type, count, elements);
  };
}
// Reads an attribute of a finalized tensor.
std::function<cudnnStatus_t()> get(Attribute name, cudnnBackendAttributeType_t type,
                                   std::int64_t capacity) {
  return [=] {
    return cudnnBackendGetAttribute(tensor(1, {2, 3}), name, type, capacity, nullptr, nullptr);
  };
}
// Reads a computed attribute before finalize.
std::function<cudnnStatus_t()> get_early(Owner owner, Attribute name,
                                         cudnnBackendAttributeType_t type) {
  return [=] {
    return cudnnBackendGetAttribute(ScopedDescriptor(owner), name, type, 0, nullptr, nullptr);
  };
}
std::function<cudnnStatus_t()> set_unfinished(Owner owner, Attribute name, Owner element) {
  return [=] { return ScopedDescriptor(owner).set(name, ScopedDescriptor(element)); };
}

constexpr std::int64_t kNine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace

BadCalls bad_attribute_calls() {
  constexpr Owner kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  constexpr Owner kConv = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
  constexpr Owner kPointwise = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
  constexpr Owner kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
  return {
      // An attribute of another descriptor.
      {"tensor: pointwise mode", set(kTensor, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD)},
      {"convolution: tensor dims", set(kConv, CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 3})},
      {"engine: heuristic mode",
       set(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A)},
      {"matmul operation: reduction's x",
       set(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
           tensor(1, {2}))},
      {"get: attribute of another descriptor",
       get(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 0)},
      // Elements of another type.
      {"tensor dims: int32", set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, 4)},
      {"tensor type: int64", set(kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, std::int64_t{0})},
      {"tensor virtual: int64", set(kTensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, std::int64_t{1})},
      {"pointwise clip: int64",
       set(kPointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, std::int64_t{0})},
      {"convolution mode: pointwise mode",
       set(kConv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_POINTWISE_ADD)},
      {"resample window: int64s",
       set(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, {2, 2})},
      {"heuristics sm count: int64", set(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                         CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, std::int64_t{64})},
      {"rng seed: double",
       set(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, CUDNN_ATTR_OPERATION_RNG_SEED, 1.0)},
      {"variant pack ids: pointers",
       set(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
           Values::pointers({nullptr}))},
      {"plan JSON: int64", set(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                               CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, std::int64_t{1})},
      {"get: tensor dims as int32", get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT32, 4)},
      {"get: tensor type as int64", get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_INT64, 1)},
      // Counts.
      {"tensor dims: none", set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, kNine)},
      {"tensor dims: nine", set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 9, kNine)},
      {"tensor dims: count -1",
       set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, -1, kNine)},
      {"tensor dims: least count", set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                                       std::numeric_limits<std::int64_t>::min(), kNine)},
      {"tensor dims: largest count", set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                                         std::numeric_limits<std::int64_t>::max(), kNine)},
      {"tensor id: two", set(kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, {1, 2})},
      {"tensor id: none", set(kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0, kNine)},
      {"matmul operation: two tensors for a",
       [] {
         const ScopedDescriptor x = tensor(1, {2, 2}), y = tensor(2, {2, 2});
         return ScopedDescriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
             .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, Values::descriptors({x, y}));
       }},
      {"graph operations: count -1",
       set(kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, -1, kNine)},
      {"graph operations: largest count",
       set(kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           std::numeric_limits<std::int64_t>::max(), kNine)},
      {"get: capacity -1", get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, -1)},
      // No elements.
      {"tensor dims: null",
       set(kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, nullptr)},
      {"tensor type: null",
       set(kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, nullptr)},
      {"plan JSON: null",
       set(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
           CUDNN_TYPE_CHAR, 10, nullptr)},
      {"variant pack pointers: null array",
       set(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
           CUDNN_TYPE_VOID_PTR, 3, nullptr)},
      // Values outside their enumeration.
      {"tensor type: 22",
       set(kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, Values::raw(CUDNN_TYPE_DATA_TYPE, 22))},
      {"tensor type: -1",
       set(kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, Values::raw(CUDNN_TYPE_DATA_TYPE, -1))},
      {"tensor reordering: 4", set(kTensor, CUDNN_ATTR_TENSOR_REORDERING_MODE,
                                   Values::raw(CUDNN_TYPE_TENSOR_REORDERING_MODE, 4))},
      {"pointwise mode: 24",
       set(kPointwise, CUDNN_ATTR_POINTWISE_MODE, Values::raw(CUDNN_TYPE_POINTWISE_MODE, 24))},
      {"pointwise mode: 500",
       set(kPointwise, CUDNN_ATTR_POINTWISE_MODE, Values::raw(CUDNN_TYPE_POINTWISE_MODE, 500))},
      {"pointwise NaN: 2", set(kPointwise, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
                               Values::raw(CUDNN_TYPE_NAN_PROPOGATION, 2))},
      {"convolution mode: 2",
       set(kConv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, Values::raw(CUDNN_TYPE_CONVOLUTION_MODE, 2))},
      {"reduction operator: 9",
       set(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
           Values::raw(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 9))},
      {"resample mode: 5", set(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, CUDNN_ATTR_RESAMPLE_MODE,
                               Values::raw(CUDNN_TYPE_RESAMPLE_MODE, 5))},
      {"padding mode: 3", set(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, CUDNN_ATTR_RESAMPLE_PADDING_MODE,
                              Values::raw(CUDNN_TYPE_PADDING_MODE, 3))},
      {"rng distribution: 3", set(CUDNN_BACKEND_RNG_DESCRIPTOR, CUDNN_ATTR_RNG_DISTRIBUTION,
                                  Values::raw(CUDNN_TYPE_RNG_DISTRIBUTION, 3))},
      {"heuristic mode: 4", set(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE,
                                Values::raw(CUDNN_TYPE_HEUR_MODE, 4))},
      {"knob: 44", set(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                       Values::raw(CUDNN_TYPE_KNOB_TYPE, 44))},
      {"norm mode: 6",
       set(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
           Values::raw(CUDNN_TYPE_NORM_MODE, 6))},
      {"norm phase: 2",
       set(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
           Values::raw(CUDNN_TYPE_NORM_FWD_PHASE, 2))},
      {"mixture mode: 3", set(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR,
                              CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE,
                              Values::raw(CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE, 3))},
      {"signal mode: 2",
       set(CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, CUDNN_ATTR_OPERATION_SIGNAL_MODE,
           Values::raw(CUDNN_TYPE_SIGNAL_MODE, 2))},
      // Descriptors and handles as elements.
      {"reshape x: null descriptor",
       set(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
           static_cast<cudnnBackendDescriptor_t>(nullptr))},
      {"reshape x: destroyed descriptor",
       [] {
         cudnnBackendDescriptor_t gone = nullptr;
         cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &gone);
         const ScopedDescriptor reshape(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
         cudnnBackendDestroyDescriptor(gone);
         return reshape.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, gone);
       }},
      {"reshape x: a tensor not finalized",
       set_unfinished(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kTensor)},
      {"reshape x: itself",
       [] {
         const ScopedDescriptor reshape(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
         return reshape.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, reshape);
       }},
      {"reshape x: a matmul",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
             .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                  ScopedDescriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                                   {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT}})
                      .done());
       }},
      {"convolution operation: a tensor for its parameters",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
             .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, tensor(1, {2}));
       }},
      {"graph operations: a tensor",
       [] { return ScopedDescriptor(kGraph).set(CUDNN_ATTR_OPERATIONGRAPH_OPS, tensor(1, {2})); }},
      {"heuristics graph: not finalized",
       set_unfinished(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                      kGraph)},
      {"plan config: not finalized",
       set_unfinished(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                      CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)},
      {"graph handle: null",
       set(kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, static_cast<cudnnHandle_t>(nullptr))},
      {"graph handle: destroyed",
       [] {
         cudnnHandle_t handle = nullptr;
         cudnnCreate(&handle);
         const ScopedDescriptor graph(kGraph);
         cudnnDestroy(handle);
         return graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
       }},
      // After and before finalize.
      {"tensor: set after finalize",
       [] { return tensor(1, {2}).set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{2}); }},
      {"plan workspace: set", set(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::int64_t{1})},
      {"engine note: set", set(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                               Values::raw(CUDNN_TYPE_NUMERICAL_NOTE, 0))},
      {"heuristics results: before finalize",
       get_early(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                 CUDNN_TYPE_BACKEND_DESCRIPTOR)},
      {"config workspace: before finalize",
       get_early(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                 CUDNN_TYPE_INT64)},
      {"plan workspace: before finalize",
       get_early(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                 CUDNN_TYPE_INT64)},
      {"engine notes: before finalize",
       get_early(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                 CUDNN_TYPE_BEHAVIOR_NOTE)},
      {"graph engine count: before finalize",
       get_early(kGraph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64)},
      // Reading descriptors.
      {"get descriptor: into null",
       [] {
         const ScopedDescriptor x = tensor(1, {2});
         const ScopedDescriptor op(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                   {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}});
         cudnnBackendDescriptor_t out = nullptr;
         return cudnnBackendGetAttribute(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, nullptr, &out);
       }},
      {"get descriptor: into another type",
       [] {
         const ScopedDescriptor x = tensor(1, {2});
         const ScopedDescriptor op(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                   {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}});
         const ScopedDescriptor wrong(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
         cudnnBackendDescriptor_t out = wrong;
         return cudnnBackendGetAttribute(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, nullptr, &out);
       }},
      {"get seed: as a number when it is a tensor",
       [] {
         const ScopedDescriptor seed = tensor(1, {1}, CUDNN_DATA_INT64);
         const ScopedDescriptor op(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                                   {{CUDNN_ATTR_OPERATION_RNG_SEED, seed}});
         std::int64_t value = 0;
         return cudnnBackendGetAttribute(op, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1,
                                         nullptr, &value);
       }},
  };
}

}  // namespace ashlar::cudnn::test
