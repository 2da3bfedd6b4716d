// From a plan to the values that describe it.
#include <ashlar/inspect.hpp>

#include <algorithm>

#include "graph/op_traits.hpp"
#include "plan/plan_data.hpp"
#include "plan/tune.hpp"

namespace ashlar {

namespace {

// Operations per second that the device could do for the region. Tensor cores multiply 8-bit
// operands twice as fast as 16-bit ones, and tf32 half as fast; the wider operand decides.
double peak_of(const Region& region, const DeviceProps& device, bool allow_tf32) {
  if (!region.anchor || region.anchor->inputs.empty()) return device.flops_f32;
  const auto& inputs = region.anchor->inputs;
  DType dtype = inputs[0].dtype;
  if (traits_of(region.anchor->op).is_gemm_like) {
    if (bit_width(inputs[1].dtype) > bit_width(dtype)) dtype = inputs[1].dtype;
    const int capability = device.compute_capability;
    if (bit_width(dtype) <= 8 && capability >= (is_floating(dtype) ? 89 : 75))
      return 2 * device.flops_f16;
    if (dtype == f32 && allow_tf32 && capability >= 80) return device.flops_f16 / 2;
  }
  return bit_width(dtype) <= 16 ? device.flops_f16 : device.flops_f32;
}

// What the kernel reserved; before it is built, what its configuration expects.
std::int64_t scratch_of(const PlanData::Step& step) {
  return step.kernel ? step.kernel->scratch_layout().total_bytes()
                     : step.choice.config.scratch_bytes;
}

RegionInspection inspect_region(const PlanData& plan, const PlanData::Step& step) {
  const Region& region = step.region;
  RegionInspection one;
  one.name = region.to_text(plan.lowered.graph);
  one.nodes = region.nodes;
  one.reads = region.reads;
  one.writes = region.writes;
  if (const Engine* engine = step.choice.engine) {
    one.engine = engine->id();
    one.kind = to_string(engine->kind());
    one.config = step.choice.config.to_text();
    one.method = engine->method_for(region);
  }
  one.seconds = step.choice.seconds;
  one.scratch_bytes = scratch_of(step);
  one.flops = region.visible_flops();
  one.bytes = region.bytes();
  one.peak_flops = peak_of(region, plan.device, plan.options.allow_tf32);
  one.arithmetic_seconds = one.flops / one.peak_flops;
  one.memory_seconds = one.bytes / plan.device.bytes_per_second;
  for (const Attempt& attempt : step.choice.attempts)
    one.attempts.push_back({std::string(attempt.engine->id()), attempt.engine->method_for(region),
                            attempt.engine == step.choice.engine, attempt.is_supported,
                            attempt.is_other_operation, attempt.outcome});
  return one;
}

void add_boundaries(const PlanData& plan, std::vector<RegionInspection>& regions) {
  std::vector<std::size_t> by_node(plan.lowered.graph.nodes().size(), 0);
  for (std::size_t i = 0; i < regions.size(); ++i)
    for (const NodeId id : regions[i].nodes) by_node[static_cast<std::size_t>(id)] = i;
  for (FusionBoundary& one : fusion_boundaries(plan.lowered, plan.limits))
    regions[by_node[static_cast<std::size_t>(one.to)]].boundaries.push_back(
        {static_cast<int>(by_node[static_cast<std::size_t>(one.from)]), one.value,
         std::move(one.reason)});
}

}  // namespace

Inspection PlanData::inspect(const InspectDetail& detail) const {
  Inspection whole;
  whole.graph = lowered.graph.clone();
  whole.operations = static_cast<int>(graph.nodes().size());
  whole.rewrites = lowered.notes;
  for (const View& view : lowered.views) whole.storage.push_back(view.tensor);
  for (const Step& step : steps) {
    RegionInspection& one = whole.regions.emplace_back(inspect_region(*this, step));
    if (detail.candidates)
      one.candidates = trials_of(
          contenders(rank(step.region, backend->engines(), device, options).candidates, options));
    if (const Engine* engine = step.choice.engine; engine && detail.shared_memory)
      one.shared_bytes =
          engine->dynamic_shared_bytes(lowered.graph, step.region, step.choice.config, device);
  }
  add_boundaries(*this, whole.regions);
  whole.device = device;
  whole.notes = notes;
  whole.workspace_bytes = workspace_bytes;
  whole.owned_bytes = owned_bytes;
  return whole;
}

double Inspection::seconds() const {
  double total = 0;
  for (const RegionInspection& region : regions) total += region.seconds;
  return total;
}

const RegionInspection* Inspection::heaviest() const {
  const auto found = std::ranges::max_element(regions, {}, &RegionInspection::seconds);
  return found == regions.end() ? nullptr : &*found;
}

std::int64_t Inspection::shared_bytes() const {
  std::int64_t most = 0;
  for (const RegionInspection& region : regions) most = std::max(most, region.shared_bytes);
  return most;
}

}  // namespace ashlar
