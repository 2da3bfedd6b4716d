// EXECUTION_PLAN descriptors: compiled plans.
#pragma once

#include <ashlar/plan.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/engine.hpp"

namespace ashlar::cudnn {

// A plan, and the map from variant-pack uids to its pointers.
struct BoundPlan {
  std::shared_ptr<const Plan> plan;
  // One per pointer argument of Plan::run(), sorted by uid.
  struct Binding {
    std::int64_t uid;
    std::size_t pointer;
  };
  std::vector<Binding> bindings;
  std::vector<Assumption> assumptions;

  // Workspace bytes that the caller provides: one alignment line more than the plan needs, so that
  // the workspace may start at any address.
  std::int64_t workspace_size() const;
};

class ExecutionPlan : public Finished {
 public:
  ExecutionPlan(RecordRef config, BoundPlan plan) : config_(config), plan_(std::move(plan)) {}

  const BoundPlan& plan() const { return plan_; }
  // The plan for a handle's device and for overridden shapes. Compiled on first use and cached.
  std::shared_ptr<const BoundPlan> other(const Device& device, const ShapeOverrides& overrides,
                                         bool may_assume) const;

  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;

 private:
  RecordRef config_;
  BoundPlan plan_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const BoundPlan>> others_;
};

}  // namespace ashlar::cudnn
