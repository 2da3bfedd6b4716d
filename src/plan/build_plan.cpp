// Builds a plan: lowers the graph, partitions it into regions, selects engines, lays out memory and
// builds kernels.
#include <algorithm>
#include <map>

#include "base/element.hpp"
#include "plan/device_partition.hpp"
#include "plan/in_place.hpp"
#include "plan/lifetimes.hpp"
#include "plan/plan_data.hpp"
#include "plan/recompute.hpp"
#include "plan/tune.hpp"
#include "plan/workspace.hpp"

namespace ashlar {

namespace {

// What lowering asks. A plan for one named engine, or for the reference, keeps operations whole.
EngineQuery plan_engines(const CompileOptions& options, EngineTable table,
                         const DeviceProps& device) {
  if (options.reference_only || !options.engine.empty()) return {};
  return {table, device};
}

class MemoryPlanner {
 public:
  explicit MemoryPlanner(PlanData& plan) : plan_(plan) {}

  void run() {
    locate_bound_and_constants();
    keep_constants();
    collect_intermediates();
    collect_scratch();
    const std::int64_t total = lay_out(buffers_);
    const std::int64_t gap = plan_.options.guard ? kGuardBytes : 0;
    for (const auto& [tensor, index] : intermediates_) {
      const Buffer& buffer = buffers_[index];
      plan_.locations[static_cast<std::size_t>(tensor)] = {Location::Kind::workspace,
                                                           buffer.offset + gap, nullptr};
      if (!gap) continue;
      const std::string owner =
          fmt::format("intermediate '{}'", plan_.lowered.graph.tensor(tensor).name);
      for (std::int64_t offset : {buffer.offset, buffer.offset + buffer.bytes - kGuardBytes})
        plan_.guards.push_back({offset, buffer.first_step, buffer.last_step, owner});
    }
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      plan_.steps[i].scratch_offset = buffers_[scratch_[i]].offset;
    divide(total);
    if (plan_.owned_bytes > 0) plan_.arena.emplace(*plan_.backend, plan_.device, plan_.owned_bytes);
  }

  // Without built kernels: sizes from the configurations' scratch estimates.
  void estimate() {
    collect_intermediates();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      buffers_.push_back(
          {plan_.steps[i].choice.config.scratch_bytes, static_cast<int>(i), static_cast<int>(i)});
    divide(lay_out(buffers_));
  }

 private:
  // Memory within the workspace limit comes from the caller; otherwise the plan owns it.
  void divide(std::int64_t total) {
    (total <= plan_.options.workspace_limit ? plan_.workspace_bytes : plan_.owned_bytes) = total;
  }

  void locate_bound_and_constants() {
    const auto& tensors = plan_.lowered.graph.tensors();
    plan_.locations.resize(tensors.size());
    for (std::size_t i = 0; i < plan_.bound.size(); ++i)
      plan_.locations[static_cast<std::size_t>(plan_.bound[i])] = {
          Location::Kind::bound, static_cast<std::int64_t>(i), nullptr};
    plan_.constants.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].kind != TensorKind::constant) continue;
      store_element(tensors[i].dtype, plan_.constants[i].data(), 0, tensors[i].value);
      plan_.locations[i] = {Location::Kind::constant, 0, plan_.constants[i].data()};
    }
  }

  // Lets the kernels prepack constant inputs.
  void keep_constants() {
    if (plan_.options.constants.empty()) return;
    std::vector<void*> pointers(plan_.bound.size(), nullptr);
    for (const auto& [name, memory] : plan_.options.constants) {
      const auto is_named = [&, wanted = std::string_view(name)](TensorId id) {
        return plan_.graph.tensor(id).name == wanted;
      };
      const auto found = std::find_if(plan_.bound.begin(), plan_.bound.end(), is_named);
      if (found == plan_.bound.end() || plan_.graph.tensor(*found).kind != TensorKind::input)
        fail(ErrorCode::invalid_argument, "constants: got '{}', expected the name of an input",
             name);
      if (memory == nullptr)
        fail(ErrorCode::invalid_argument, "constants: got null for '{}', expected its memory",
             name);
      pointers[static_cast<std::size_t>(found - plan_.bound.begin())] = const_cast<void*>(memory);
    }
    const KernelContext context(plan_.locations, pointers, nullptr, nullptr);
    for (PlanData::Step& step : plan_.steps) step.kernel->keep_constants(context);
    plan_.options.constants.clear();  // the caller may free the memory after compile()
  }

  // An intermediate in memory is live from the step that writes it to the last step that reads it.
  void collect_intermediates() {
    Lifetimes lifetimes(plan_.lowered.graph);
    for (const PlanData::Step& step : plan_.steps) lifetimes.add(step.region);
    for (const Lifetime& one : lifetimes.all()) {
      const std::int64_t gap = plan_.options.guard ? 2 * kGuardBytes : 0;
      intermediates_[one.tensor] = buffers_.size();
      const std::int64_t bytes = byte_size(plan_.lowered.graph.tensor(one.tensor));
      buffers_.push_back({gap ? (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + gap : bytes,
                          one.steps.front(), one.steps.back()});
    }
  }

  void collect_scratch() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      ScratchLayout& scratch_layout = plan_.steps[i].kernel->scratch_layout();
      if (plan_.options.guard) scratch_layout.spread(kGuardBytes);
      scratch_.push_back(buffers_.size());
      buffers_.push_back({scratch_layout.total_bytes(), static_cast<int>(i), static_cast<int>(i)});
    }
  }

  PlanData& plan_;
  std::vector<Buffer> buffers_;
  std::map<TensorId, std::size_t> intermediates_;
  std::vector<std::size_t> scratch_;
};

}  // namespace

std::shared_ptr<const PlanData> build_plan(const Graph& graph, const Backend& backend,
                                           const DeviceProps& device, const CompileOptions& options,
                                           const std::vector<SavedChoice>* saved,
                                           bool build_kernels) {
  graph.validate();
  const EngineTable table = backend.engines();
  const auto is_wanted = [&](const Engine* engine) { return engine->id() == options.engine; };
  if (!options.engine.empty() && !table.empty() &&
      std::none_of(table.begin(), table.end(), is_wanted))
    fail(ErrorCode::invalid_argument, "engine: got '{}', expected an engine of this device",
         options.engine);
  if (options.max_candidates < 0)
    fail(ErrorCode::invalid_argument, "max_candidates: got {}, expected at least 0",
         options.max_candidates);
  if (options.recompute > Recompute::all)
    fail(ErrorCode::invalid_argument, "recompute: got {}, expected none, cheap or all",
         static_cast<int>(options.recompute));
  if (options.recompute_budget < 0)
    fail(ErrorCode::invalid_argument, "recompute_budget: got {} bytes, expected at least 0",
         options.recompute_budget);
  const std::vector<InPlacePair> in_place = in_place_pairs(graph, options);
  auto plan = std::make_shared<PlanData>();
  plan->graph = graph.clone();
  plan->lowered =
      lower(graph, options.fuse, !options.reference_only, plan_engines(options, table, device));
  plan->backend = &backend;
  plan->device = device;
  plan->options = options;
  plan->bound = graph.bound_tensors();

  EngineChoices choices(table, device, options);
  std::vector<Region> regions = partition_for_device(plan->lowered, choices, plan->limits);
  recompute(plan->lowered, choices, plan->limits, regions);
  plan_in_place(in_place, plan->lowered, choices, plan->limits, regions);
  if (saved && saved->size() != regions.size())
    fail(ErrorCode::invalid_argument,
         "plan: got {} saved regions, expected {} from this version; compile the graph again",
         saved->size(), regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    Choice choice =
        saved ? select_saved(regions[i], table, device, (*saved)[i].engine, (*saved)[i].knobs)
        : options.tune && build_kernels ? tune(plan->lowered, regions[i], backend, device, options)
                                        : choices.select(regions[i]);
    plan->notes.deterministic &= choice.config.notes.deterministic;
    plan->notes.tf32 |= choice.config.notes.tf32;
    plan->notes.reduced_precision_accumulation |=
        choice.config.notes.reduced_precision_accumulation;
    plan->notes.truncating_accumulation |= choice.config.notes.truncating_accumulation;
    plan->notes.runtime_compiled |= choice.config.notes.runtime_compiled;
    plan->notes.winograd = std::max(plan->notes.winograd, choice.config.notes.winograd);
    plan->steps.push_back({std::move(regions[i]), std::move(choice), nullptr, 0});
  }
  if (!build_kernels) {
    MemoryPlanner(*plan).estimate();
    return plan;
  }
  for (PlanData::Step& step : plan->steps) {
    if (!step.choice.engine)
      fail(ErrorCode::internal, "no engine runs '{}' on {}, expected at least the reference",
           step.region.to_text(plan->lowered.graph), device.name);
    step.kernel =
        step.choice.engine->build(plan->lowered.graph, step.region, step.choice.config, device);
  }
  MemoryPlanner(*plan).run();
  return plan;
}

}  // namespace ashlar
