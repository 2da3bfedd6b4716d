// Invalid graphs, engines, plans and executions.
#include <array>

#include "cudnn/bad_calls.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

namespace {

struct Handle {
  cudnnHandle_t handle = nullptr;
  Handle() { cudnnCreate(&handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cudnnDestroy(handle); }
};

ScopedDescriptor exponential(std::int64_t from, std::int64_t to) {
  return ScopedDescriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                          {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(from, {2, 3})},
                           {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(to, {2, 3})},
                           {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                            ScopedDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                                             {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_EXP},
                                              {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT}})
                                .done()}})
      .done();
}

// The graph y (uid 2) = exp(x (uid 1)).
ScopedDescriptor small_graph() {
  return ScopedDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                          {{CUDNN_ATTR_OPERATIONGRAPH_OPS, exponential(1, 2)}})
      .done();
}
ScopedDescriptor small_engine() {
  return ScopedDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                          {{CUDNN_ATTR_ENGINE_OPERATION_GRAPH, small_graph()},
                           {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::int64_t{0}}})
      .done();
}
ScopedDescriptor small_plan() {
  return ScopedDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                          {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                            ScopedDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                             {{CUDNN_ATTR_ENGINECFG_ENGINE, small_engine()}})
                                .done()}})
      .done();
}

ScopedDescriptor pack(const std::vector<std::int64_t>& uids,
                      std::initializer_list<void*> pointers) {
  return ScopedDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                          {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids},
                           {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Values::pointers(pointers)}})
      .done();
}

using Call = std::function<cudnnStatus_t()>;
Call finalize(cudnnBackendDescriptorType_t type,
              const std::function<std::vector<ScopedDescriptor::Attribute>()>& attributes) {
  return [=] {
    const ScopedDescriptor descriptor(type);
    for (const auto& [name, values] : attributes())
      if (const cudnnStatus_t status = descriptor.set(name, values)) return status;
    return descriptor.finalize();
  };
}
Call nothing(cudnnBackendDescriptorType_t type) {
  return finalize(type, [] { return std::vector<ScopedDescriptor::Attribute>(); });
}
Call text(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name,
          const std::string& json) {
  return [=] {
    const ScopedDescriptor descriptor(type);
    if (const cudnnStatus_t status = descriptor.set(name, json)) return status;
    return descriptor.finalize();
  };
}

std::array<float, 6> x, y;

BadCalls graph_calls() {
  constexpr auto kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  constexpr auto kPlanText = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  return {
      {"graph: empty", nothing(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)},
      {"graph: a tensor written twice",
       [] {
         const ScopedDescriptor first = exponential(1, 2), second = exponential(3, 2);
         const ScopedDescriptor graph(
             CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
             {{CUDNN_ATTR_OPERATIONGRAPH_OPS, Values::descriptors({first, second})}});
         return graph.finalize();
       }},
      {"graph: a circle",
       [] {
         const ScopedDescriptor first = exponential(1, 2), second = exponential(2, 1);
         const ScopedDescriptor graph(
             CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
             {{CUDNN_ATTR_OPERATIONGRAPH_OPS, Values::descriptors({first, second})}});
         return graph.finalize();
       }},
      {"heuristics: empty", nothing(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)},
      {"heuristics: no mode",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                 {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, small_graph()}})
             .finalize();
       }},
      {"engine: empty", nothing(CUDNN_BACKEND_ENGINE_DESCRIPTOR)},
      {"engine: no index",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                                 {{CUDNN_ATTR_ENGINE_OPERATION_GRAPH, small_graph()}})
             .finalize();
       }},
      {"config: empty", nothing(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)},
      {"config: workspace knob 7",
       [] {
         return ScopedDescriptor(
                    CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                    {{CUDNN_ATTR_ENGINECFG_ENGINE, small_engine()},
                     {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                      ScopedDescriptor(
                          CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                          {{CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_WORKSPACE},
                           {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, std::int64_t{7}}})
                          .done()}})
             .finalize();
       }},
      {"plan: empty", nothing(kPlan)},
      {"plan text: empty", text(kPlan, kPlanText, "")},
      {"plan text: a number", text(kPlan, kPlanText, "7")},
      {"plan text: an empty object", text(kPlan, kPlanText, "{}")},
      {"plan text: of another library", text(kPlan, kPlanText, R"({"format": "x", "version": 1})")},
      {"device text: an empty object",
       text(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, "{}")},
      {"kernel cache text: an empty object",
       text(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
            "{}")},
  };
}

}  // namespace

BadCalls bad_plan_calls() {
  BadCalls calls = graph_calls();
  const BadCalls executions = {
      {"execute: null handle",
       [] {
         return cudnnBackendExecute(nullptr, small_plan(), pack({1, 2}, {x.data(), y.data()}));
       }},
      {"execute: null plan",
       [] {
         return cudnnBackendExecute(Handle().handle, nullptr, pack({1, 2}, {x.data(), y.data()}));
       }},
      {"execute: null variant pack",
       [] { return cudnnBackendExecute(Handle().handle, small_plan(), nullptr); }},
      {"execute: a plan not finalized",
       [] {
         return cudnnBackendExecute(Handle().handle,
                                    ScopedDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
                                    pack({1, 2}, {x.data(), y.data()}));
       }},
      {"execute: a variant pack not finalized",
       [] {
         return cudnnBackendExecute(Handle().handle, small_plan(),
                                    ScopedDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
       }},
      {"execute: a graph for a plan",
       [] {
         return cudnnBackendExecute(Handle().handle, small_graph(),
                                    pack({1, 2}, {x.data(), y.data()}));
       }},
      {"execute: a plan for a variant pack",
       [] {
         const ScopedDescriptor plan = small_plan();
         return cudnnBackendExecute(Handle().handle, plan, plan);
       }},
      {"execute: no output",
       [] { return cudnnBackendExecute(Handle().handle, small_plan(), pack({1}, {x.data()})); }},
      {"execute: no input",
       [] { return cudnnBackendExecute(Handle().handle, small_plan(), pack({2}, {y.data()})); }},
      {"execute: a null pointer",
       [] {
         return cudnnBackendExecute(Handle().handle, small_plan(),
                                    pack({1, 2}, {nullptr, y.data()}));
       }},
      {"populate: no graph",
       [] {
         return cudnnBackendPopulateCudaGraph(Handle().handle, small_plan(),
                                              pack({1, 2}, {x.data(), y.data()}), nullptr);
       }},
      {"update: no graph",
       [] {
         return cudnnBackendUpdateCudaGraph(Handle().handle, small_plan(),
                                            pack({1, 2}, {x.data(), y.data()}), nullptr);
       }},
      {"execute: shapes of another rank",
       [] {
         std::vector<std::vector<std::int64_t>> shapes = {{2, 3, 1}}, strides = {{3, 1, 1}};
         const ScopedDescriptor variants =
             ScopedDescriptor(
                 CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                 {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2}},
                  {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Values::pointers({x.data(), y.data()})},
                  {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, {std::int64_t{1}}},
                  {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, Values::pointers({&shapes})},
                  {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, Values::pointers({&strides})}})
                 .done();
         return cudnnBackendExecute(Handle().handle, small_plan(), variants);
       }},
  };
  calls.insert(calls.end(), executions.begin(), executions.end());
  return calls;
}

}  // namespace ashlar::cudnn::test
