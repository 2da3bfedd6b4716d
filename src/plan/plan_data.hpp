// What a Plan holds: made once by build_plan, never changed afterwards.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "plan/arena.hpp"
#include "plan/lowered.hpp"
#include "plan/partition.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The choices of a saved plan, region by region.
struct SavedChoice {
  std::string engine;
  std::vector<std::pair<std::string, std::int64_t>> knobs;
};

class PlanData {
 public:
  struct Step {
    Region region;
    Choice choice;
    std::unique_ptr<Kernel> kernel;  // null when only explaining
    std::int64_t scratch_offset = 0;
  };
  // Guard bytes around an intermediate, valid while it lives.
  struct Guard {
    std::int64_t offset = 0;
    int first_step = 0, last_step = 0;
    std::string owner;
  };

  Graph graph;  // as given
  LoweredGraph lowered;
  std::vector<FusionLimits> limits;  // by node of the lowered graph, as it was cut
  DeviceProps device;
  CompileOptions options;
  std::vector<TensorId> bound;
  std::vector<Step> steps;
  std::vector<Location> locations;  // by tensor of the lowered graph
  std::vector<std::array<std::byte, 8>> constants;
  std::vector<Guard> guards;
  PlanNotes notes;
  std::int64_t workspace_bytes = 0;  // asked of the caller
  std::int64_t owned_bytes = 0;      // kept in the arena instead
  mutable std::optional<Arena> arena;

  void run(std::span<void* const> pointers, void* workspace, void* stream) const;
  std::string explain() const;

 private:
  void run_steps(std::span<void* const> pointers, std::byte* workspace, void* stream) const;
  void run_guarded(int step, KernelContext& context, std::byte* workspace) const;
};

// Validates, lowers, cuts, selects and (for a device that is present) builds. With `saved`, takes
// those choices.
std::shared_ptr<const PlanData> build_plan(const Graph& graph, const DeviceProps& device,
                                           const CompileOptions& options,
                                           const std::vector<SavedChoice>* saved,
                                           bool build_kernels);

}  // namespace ashlar
