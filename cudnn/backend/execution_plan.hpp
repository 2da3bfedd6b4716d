// Plans that are ready to run.
#pragma once

#include <ashlar/plan.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/engine.hpp"

namespace ashlar::cudnn {

// A plan, and where the pointers of a variant pack go.
struct BoundPlan {
  std::shared_ptr<const Plan> plan;
  // One per pointer of Plan::run, by uid.
  struct Place {
    std::int64_t uid;
    std::size_t pointer;
  };
  std::vector<Place> places;
  std::vector<Assumption> assumptions;

  // Bytes a caller has to give: one more line of memory than the plan needs, so that it may begin
  // anywhere.
  std::int64_t workspace_size() const;
};

class ExecutionPlan : public Finished {
 public:
  ExecutionPlan(RecordRef config, BoundPlan plan) : config_(config), plan_(std::move(plan)) {}

  const BoundPlan& own() const { return plan_; }
  // The plan for the device of a handle; with overrides, for these extents instead of those of the
  // descriptors. Compiled when first asked for, and then kept.
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
