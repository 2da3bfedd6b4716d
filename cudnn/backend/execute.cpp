// cudnnBackendExecute(), and plans as nodes of CUDA graphs.
#include <algorithm>
#include <array>
#include <ashlar/check.hpp>
#include <ashlar/plan.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "backend/descriptor.hpp"
#include "backend/execution_plan.hpp"
#include "backend/variant_pack.hpp"
#include "core/capture.hpp"
#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"

namespace ashlar::cudnn {

namespace {

constexpr std::uintptr_t kWorkspaceAlignment = 64;
constexpr std::size_t kMaxScalarBytes = 16;  // bytes of a pass-by-value tensor

// The pointers of one execution, in a fixed array up to its size and on the heap beyond.
class Pointers {
 public:
  explicit Pointers(std::size_t count) : count_(count) {
    if (count > inline_.size()) heap_.resize(count);
  }
  void*& operator[](std::size_t index) { return all()[index]; }
  std::span<void* const> span() { return {all(), count_}; }

 private:
  void** all() { return count_ > inline_.size() ? heap_.data() : inline_.data(); }
  std::size_t count_;
  std::array<void*, 64> inline_ = {};
  std::vector<void*> heap_;
};

Pointers pointers_of(const BoundPlan& plan, std::span<const std::int64_t> uids,
                     std::span<void* const> provided) {
  Pointers pointers(plan.bindings.size());
  for (std::size_t i = 0; i < std::min(uids.size(), provided.size()); ++i) {
    const auto range =
        std::equal_range(plan.bindings.begin(), plan.bindings.end(), BoundPlan::Binding{uids[i], 0},
                         [](const auto& a, const auto& b) { return a.uid < b.uid; });
    for (auto binding = range.first; binding != range.second; ++binding)
      pointers[binding->pointer] = provided[i];
  }
  for (const BoundPlan::Binding& binding : plan.bindings)
    if (pointers[binding.pointer] == nullptr) {
      const Tensor& tensor = plan.plan->graph().tensor(plan.plan->bound_tensors()[binding.pointer]);
      if (element_count(tensor.dims) == 0) continue;
      const bool is_listed = std::find(uids.begin(), uids.end(), binding.uid) != uids.end();
      fail(is_listed ? CUDNN_STATUS_BAD_PARAM_NULL_POINTER : CUDNN_STATUS_BAD_PARAM,
           "CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS: got {} for tensor {}, expected a pointer to its {}",
           is_listed ? "null" : "nothing", binding.uid,
           tensor.kind == TensorKind::output ? "memory to write" : "memory to read");
    }
  return pointers;
}

void* aligned_workspace(const BoundPlan& plan, void* provided) {
  if (plan.plan->workspace_size() == 0) return nullptr;
  if (provided == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
         "CUDNN_ATTR_VARIANT_PACK_WORKSPACE: got null, expected a pointer to {} bytes",
         plan.workspace_size());
  const auto address = reinterpret_cast<std::uintptr_t>(provided);
  return reinterpret_cast<void*>((address + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
                                 kWorkspaceAlignment);
}

ShapeOverrides overrides_of(const VariantPack& pack) {
  ShapeOverrides overrides;
  for (std::size_t i = 0; i < pack.override_uids.size(); ++i)
    overrides[pack.override_uids[i]] = {Dims(pack.override_shapes[i]),
                                        Dims(pack.override_strides[i])};
  return overrides;
}

// Whether the pass-by-value tensors hold the values that the plan was compiled for.
bool assumptions_hold(const std::vector<Assumption>& assumptions, const VariantPack& pack) {
  return std::all_of(assumptions.begin(), assumptions.end(), [&](const Assumption& assumed) {
    const auto uid = std::find(pack.uids.begin(), pack.uids.end(), assumed.uid);
    const void* number = uid == pack.uids.end()
                             ? nullptr
                             : pack.pointers[static_cast<std::size_t>(uid - pack.uids.begin())];
    if (number == nullptr) return false;  // the general plan reports the missing pointer
    Tensor one;
    one.dtype = assumed.dtype;
    one.dims = one.strides = {1};
    const double provided = read_element(one, number, 0);
    // Clients compute scale factors in float.
    return provided == assumed.value || std::fabs(provided - assumed.value) <= 1e-6 * assumed.value;
  });
}

// Resolves the plan, its pointers and its workspace, and calls `use` with them.
template <class Use>
void with_plan(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
               cudnnBackendDescriptor_t pack_descriptor, Use&& use) {
  const cudnnContext& context = object(handle, "handle");
  const RecordRef plan_record =
      finalized(plan_descriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "executionPlan");
  const RecordRef pack_record =
      finalized(pack_descriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variantPack");
  const auto& execution_plan = finished<ExecutionPlan>(*plan_record);
  const auto& pack = finished<VariantPack>(*pack_record);
  const ShapeOverrides overrides = overrides_of(pack);
  std::shared_ptr<const BoundPlan> owner;
  const bool is_right = assumptions_hold(execution_plan.plan().assumptions, pack);
  if (!overrides.empty() || !is_right ||
      execution_plan.plan().plan->device().name != context.device.props().name)
    owner = execution_plan.other(context.device, overrides, is_right);
  const BoundPlan& plan = owner != nullptr ? *owner : execution_plan.plan();
  Pointers pointers = pointers_of(plan, pack.uids, pack.pointers);
  void* workspace = aligned_workspace(plan, pack.workspace);
  use(context, plan, pointers.span(), workspace);
}

// An execution to be run later. It owns the plan, the pointers and copies of the pass-by-value
// tensors.
std::function<void()> deferred_run(const BoundPlan& bound, std::span<void* const> pointers,
                                   void* workspace) {
  struct Run {
    std::shared_ptr<const Plan> plan;
    std::vector<void*> pointers;
    std::vector<std::array<std::byte, kMaxScalarBytes>> numbers;
  };
  auto run = std::make_shared<Run>(Run{bound.plan, {pointers.begin(), pointers.end()}, {}});
  run->numbers.resize(pointers.size());
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    const Tensor& tensor = bound.plan->graph().tensor(bound.plan->bound_tensors()[i]);
    if (tensor.kind != TensorKind::scalar || pointers[i] == nullptr) continue;
    std::memcpy(run->numbers[i].data(), pointers[i], static_cast<std::size_t>(byte_size(tensor)));
    run->pointers[i] = run->numbers[i].data();
  }
  return [run, workspace] { run->plan->run(run->pointers, workspace, nullptr); };
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  return guarded(__func__, [&] {
    with_plan(handle, executionPlan, variantPack,
              [](const cudnnContext& context, const BoundPlan& bound,
                 std::span<void* const> pointers, void* workspace) {
                if (is_captured(context.device, context.stream))
                  record_work(context.stream, deferred_run(bound, pointers, workspace));
                else
                  bound.plan->run(pointers, workspace, context.stream);
              });
  });
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                            cudnnBackendDescriptor_t executionPlan,
                                            cudnnBackendDescriptor_t variantPack,
                                            cudaGraph_t graph) {
  return guarded(__func__, [&] {
    required(graph, "graph");
    with_plan(
        handle, executionPlan, variantPack,
        [&](const cudnnContext&, const BoundPlan& bound, std::span<void* const> pointers,
            void* workspace) { bound.plan->populate_cuda_graph(graph, pointers, workspace); });
  });
}

cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                          cudnnBackendDescriptor_t executionPlan,
                                          cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return guarded(__func__, [&] {
    required(graph, "graph");
    with_plan(handle, executionPlan, variantPack,
              [&](const cudnnContext&, const BoundPlan& bound, std::span<void* const> pointers,
                  void* workspace) { bound.plan->update_cuda_graph(graph, pointers, workspace); });
  });
}
