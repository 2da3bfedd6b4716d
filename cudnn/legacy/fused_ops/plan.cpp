// cudnnMakeFusedOpsPlan() compiles a plan from the constants; cudnnFusedOpsExecute() runs it on the
// pointers of a variant pack.
#include "legacy/convolution.hpp"
#include "legacy/fused_ops/graphs.hpp"
#include "legacy/fused_ops/labels.hpp"

struct cudnnFusedOpsPlanStruct {
  static constexpr const char* kTypeName = "cudnnFusedOpsPlan_t";
  cudnnFusedOps_t ops;
  std::optional<ashlar::cudnn::Fusion> fusion = {};  // after cudnnMakeFusedOpsPlan()
};

namespace ashlar::cudnn {

namespace {

void require_same(cudnnFusedOps_t of_plan, cudnnFusedOps_t of_pack, const char* parameter) {
  if (of_plan != of_pack)
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got a pack of fused op {}, expected {} as the plan has",
         parameter, static_cast<int>(of_pack), static_cast<int>(of_plan));
}

void compile(Call& call, const Fusion& fusion, std::int64_t workspace_limit) {
  CompileOptions options = fusion.options();
  options.workspace_limit = std::min(options.workspace_limit, workspace_limit);
  fusion.add_to_key(call);
  call.key(options.workspace_limit);
  call.compile([&](Graph& graph) { fusion.build(graph); }, options);
}

BoundPointer pointer_for(const FusedVariants& variants, const std::string& tensor) {
  constexpr std::string_view kNext = ".next";
  const std::string name =
      tensor.ends_with(kNext) ? tensor.substr(0, tensor.size() - kNext.size()) : tensor;
  const VariantLabel* label = find_label_of(name.c_str());
  if (label == nullptr) return nullptr;
  switch (label->label) {
    case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT: return &variants.count;
    case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR: return &variants.exponential_average_factor;
    case CUDNN_SCALAR_DOUBLE_BN_EPSILON: return &variants.epsilon;
    default: break;
  }
  const auto found = variants.pointers.find(label->label);
  if (found == variants.pointers.end() || found->second == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
         "{}: got null, expected the pointer that the plan reads", label->name);
  return found->second;
}

void execute(cudnnHandle_t handle, const Fusion& fusion, const FusedVariants& variants,
             std::int64_t workspace_limit) {
  const auto found = variants.pointers.find(CUDNN_PTR_WORKSPACE);
  void* workspace = found != variants.pointers.end() ? found->second : nullptr;
  Call call(handle, "fused_ops");
  compile(call, fusion, workspace_limit);
  if (!fits(call, workspace, variants.workspace_bytes)) {
    execute(handle, fusion, variants,
            within(kBest, workspace, variants.workspace_bytes).workspace_limit);
    return;
  }
  const Graph& graph = call.plan().graph();
  for (const TensorId id : graph.bound_tensors()) {
    const std::string& name = graph.tensor(id).name;
    call.bind(name, pointer_for(variants, name));
  }
  call.run(workspace, variants.workspace_bytes);
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t* plan, cudnnFusedOps_t ops) {
  return guarded_legacy(__func__, [&] {
    create_object(plan, "plan", cudnnFusedOpsPlanStruct{.ops = require_fusion(ops)});
  });
}

cudnnStatus_t cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan) {
  return guarded_legacy(__func__, [&] { destroy_object(plan, "plan"); });
}

cudnnStatus_t cudnnMakeFusedOpsPlan(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                    cudnnFusedOpsConstParamPack_t constants,
                                    size_t* workspace_bytes) {
  return guarded_legacy(__func__, [&] {
    auto& fused_plan = object(plan, "plan");
    const auto& pack = object(constants, "constPack");
    require_same(fused_plan.ops, pack.ops, "constPack");
    required(workspace_bytes, "workspaceSizeInBytes");
    Call call(handle, "fused_ops");
    Fusion fusion(pack);
    compile(call, fusion, kNoLimit);
    *workspace_bytes = static_cast<size_t>(call.workspace_size());
    fused_plan.fusion = std::move(fusion);
  });
}

cudnnStatus_t cudnnFusedOpsExecute(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                   cudnnFusedOpsVariantParamPack_t variants) {
  return guarded_legacy(__func__, [&] {
    const auto& fused_plan = object(plan, "plan");
    const auto& pack = object(variants, "varPack");
    require_same(fused_plan.ops, pack.ops, "varPack");
    if (!fused_plan.fusion)
      fail(CUDNN_STATUS_BAD_PARAM,
           "plan: got a plan that is not compiled, expected cudnnMakeFusedOpsPlan "
           "before");
    execute(handle, *fused_plan.fusion, pack, kNoLimit);
  });
}
