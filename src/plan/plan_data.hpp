// The contents of a Plan: built once by build_plan, immutable afterwards.
#pragma once

#include <array>
#include <ashlar/inspect.hpp>
#include <memory>
#include <optional>

#include "plan/arena.hpp"
#include "plan/lowered.hpp"
#include "plan/partition.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The selected engine and configuration of one region of a saved plan.
struct SavedChoice {
  std::string engine;
  std::vector<std::pair<std::string, std::int64_t>> knobs;
};

class PlanData {
 public:
  struct Step {
    Region region;
    Choice choice;
    std::unique_ptr<Kernel> kernel;  // null if the plan is only explained
    std::int64_t scratch_offset = 0;
  };
  // Guard bytes around an intermediate, valid during its lifetime.
  struct Guard {
    std::int64_t offset = 0;
    int first_step = 0, last_step = 0;
    std::string owner;
  };

  Graph graph;  // the user's graph
  LoweredGraph lowered;
  std::vector<FusionLimits> limits;  // by node of the lowered graph, as partitioned
  const Backend* backend = nullptr;
  DeviceProps device;
  CompileOptions options;
  std::vector<TensorId> bound;
  std::vector<Step> steps;
  std::vector<Location> locations;  // by tensor of the lowered graph
  std::vector<std::array<std::byte, 8>> constants;
  std::vector<Guard> guards;
  PlanNotes notes;
  std::int64_t workspace_bytes = 0;  // required from the caller
  std::int64_t owned_bytes = 0;      // in the arena instead
  mutable std::optional<Arena> arena;

  // `marks`, where given, has one marker more than there are steps: recorded before each step and
  // after the last.
  using Marks = std::vector<std::unique_ptr<Marker>>;
  void run(std::span<void* const> pointers, void* workspace, void* stream,
           const Marks* marks = nullptr) const;
  std::vector<double> region_seconds(std::span<void* const> pointers, void* workspace,
                                     void* stream) const;
  Inspection inspect(const InspectDetail& detail = {}) const;
  std::string explain() const { return inspect().to_text(); }

 private:
  void run_steps(std::span<void* const> pointers, std::byte* workspace, void* stream,
                 const Marks* marks) const;
  void run_guarded(int step, KernelContext& context, std::byte* workspace) const;
};

// Validates, lowers, partitions, selects engines and (with build_kernels) builds kernels. With
// `saved`, uses those engines and configurations.
std::shared_ptr<const PlanData> build_plan(const Graph& graph, const Backend& backend,
                                           const DeviceProps& device, const CompileOptions& options,
                                           const std::vector<SavedChoice>* saved,
                                           bool build_kernels);

// The contents of a plan saved as JSON.
struct SavedPlan {
  Graph graph;
  std::string device;  // its name
  CompileOptions options;
  std::vector<SavedChoice> choices;
};
SavedPlan read_saved_plan(std::string_view text);

}  // namespace ashlar
