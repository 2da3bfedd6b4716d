// Builds a plan: lowers the graph, partitions it into regions, selects engines, lays out memory and
// builds kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/element.hpp"
#include "plan/partition.hpp"
#include "plan/plan_data.hpp"
#include "plan/tune.hpp"
#include "plan/workspace.hpp"

namespace ashlar {

namespace {

bool has_engine(const Region& region, EngineTable table, const DeviceProps& device,
                bool (*counts)(EngineKind)) {
  for (const Engine* engine : table)
    if (counts(engine->kind()) && engine->supports(region, device)) return true;
  return false;
}
bool is_no_reference(EngineKind kind) { return kind != EngineKind::reference; }
bool is_special(EngineKind kind) { return !is_last_resort(kind); }

// By node: whether a specialised engine supports it unfused.
std::vector<bool> supported_unfused(const LoweredGraph& lowered, EngineTable table,
                                    const DeviceProps& device) {
  const std::size_t nodes = lowered.graph.nodes().size();
  std::vector<bool> result(nodes, false);
  for (const Region& region : partition(lowered, std::vector(nodes, FusionLimits{false, false})))
    if (region.anchor && has_engine(region, table, device, is_special))
      for (const NodeId id : region.nodes) result[static_cast<std::size_t>(id)] = true;
  return result;
}

// Estimated time of all regions that contain one of the nodes. Infinite if a region with tail
// reductions is not selected for a specialised engine, or not for the engine the caller requested.
double seconds_of(const std::vector<NodeId>& nodes, const LoweredGraph& lowered,
                  const std::vector<FusionLimits>& limits, EngineTable table,
                  const DeviceProps& device, const CompileOptions& options) {
  double seconds = 0;
  for (const Region& region : partition(lowered, limits)) {
    if (std::find_first_of(region.nodes.begin(), region.nodes.end(), nodes.begin(), nodes.end()) ==
        region.nodes.end())
      continue;
    const Choice choice = select(region, table, device, options);
    const bool is_taken = choice.engine && !is_last_resort(choice.engine->kind()) &&
                          (options.engine.empty() || choice.engine->id() == options.engine);
    if (!region.reductions.empty() && !is_taken) return std::numeric_limits<double>::infinity();
    // Last-resort engines launch several kernels, which their estimates do not include.
    constexpr double kFewLaunches = 5e-6;
    const bool is_last = choice.engine && is_last_resort(choice.engine->kind());
    seconds += is_last ? std::max(choice.seconds, kFewLaunches) : choice.seconds;
  }
  return seconds;
}

// The limits with one kind of fusion disabled for all nodes of a region.
std::vector<FusionLimits> without(bool FusionLimits::*fusion, const Region& region,
                                  std::vector<FusionLimits> limits) {
  for (const NodeId id : region.nodes) limits[static_cast<std::size_t>(id)].*fusion = false;
  return limits;
}

std::string estimate_text(double seconds) {
  if (std::isinf(seconds)) return "no engine";
  return fmt::format("{:.3g} us", seconds * 1e6);
}
void note_estimates(const Region& region, double fused, double unfused,
                    std::vector<FusionLimits>& limits) {
  for (const NodeId id : region.nodes)
    limits[static_cast<std::size_t>(id)].reason =
        fmt::format("estimated {} fused, {} unfused", estimate_text(fused), estimate_text(unfused));
}

// For a region with tail reductions: returns true if fusing them pays off. Otherwise narrows the
// limits: drops the prologue if it keeps engines from supporting the reductions, or else the
// reductions.
bool tails_pay(const Region& region, const LoweredGraph& lowered, std::vector<FusionLimits>& limits,
               EngineTable table, const DeviceProps& device, const CompileOptions& options) {
  const auto seconds = [&](const std::vector<FusionLimits>& of) {
    return seconds_of(region.nodes, lowered, of, table, device, options);
  };
  std::vector<FusionLimits> without_prologue = without(&FusionLimits::prologue, region, limits),
                            unfused = without(&FusionLimits::tail, region, limits);
  const double whole = seconds(limits), less = seconds(without_prologue), least = seconds(unfused);
  if (whole <= std::min(less, least)) return true;
  limits = std::move(less < least ? without_prologue : unfused);
  note_estimates(region, whole, std::min(less, least), limits);
  return false;
}

// Whether the region has a prologue that its anchor recomputes for every filter tap or tile.
bool repeats_prologue(const Region& region) {
  const bool repeats = region.anchor_as<ConvForward>() || region.anchor_as<ConvBackwardData>() ||
                       region.anchor_as<ConvBackwardFilter>() ||
                       region.anchor_as<MoeGroupedMatmulBackward>();
  return repeats && std::any_of(region.prologues.begin(), region.prologues.end(),
                                [](const PointwiseProgram& one) {
                                  return !one.empty() && !one.is_plain_load();
                                });
}

// For such a region: returns true if the fused prologue pays off; otherwise narrows the limits.
// Recomputing the prologue may cost more than a round trip through memory.
bool prologue_pays(const Region& region, const LoweredGraph& lowered,
                   std::vector<FusionLimits>& limits, EngineTable table, const DeviceProps& device,
                   const CompileOptions& options) {
  const auto seconds = [&](const std::vector<FusionLimits>& of) {
    return seconds_of(region.nodes, lowered, of, table, device, options);
  };
  std::vector<FusionLimits> unfused = without(&FusionLimits::prologue, region, limits);
  const double fused = seconds(limits), separate = seconds(unfused);
  if (fused <= separate) return true;
  limits = std::move(unfused);
  note_estimates(region, fused, separate, limits);
  return false;
}

// The refusals of the specialised engines for the region's operation.
std::string refusals(const Region& region, const Graph& graph, EngineTable table,
                     const DeviceProps& device) {
  std::string text;
  for (const Engine* engine : table) {
    if (is_last_resort(engine->kind())) continue;
    const Support support = engine->supports(region, device);
    if (support || support.is_other_operation()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", engine->id(), support.reason());
  }
  return fmt::format("no specialised engine supports {} ({})", region.to_text(graph), text);
}

// Partitions into maximal regions, then undoes fusions that would leave a region to the reference
// engine, or to another last-resort engine although a specialised engine supports a smaller region.
std::vector<Region> partition_for_device(const LoweredGraph& lowered, EngineTable table,
                                         const DeviceProps& device, const CompileOptions& options,
                                         std::vector<FusionLimits>& limits) {
  const bool fuse = options.fuse, on_gpu = fuse && device.kind == DeviceKind::cuda;
  limits.assign(lowered.graph.nodes().size(),
                FusionLimits{fuse, fuse, on_gpu, on_gpu && !options.reference_only});
  std::optional<std::vector<bool>> alone;  // computed on first use: rarely needed
  const auto is_too_large = [&](const Region& region) {
    if (region.nodes.size() == 1 || has_engine(region, table, device, is_special)) return false;
    if (!has_engine(region, table, device, is_no_reference)) return true;
    if (!region.anchor) return false;
    if (!alone) alone = supported_unfused(lowered, table, device);
    return std::any_of(region.nodes.begin(), region.nodes.end(),
                       [&](NodeId id) { return (*alone)[static_cast<std::size_t>(id)]; });
  };
  while (true) {
    std::vector<Region> regions = partition(lowered, limits);
    if (!fuse || table.empty()) return regions;
    bool narrowed = false;
    for (const Region& region : regions) {
      if (!region.reductions.empty() &&
          !tails_pay(region, lowered, limits, table, device, options)) {
        narrowed = true;
        continue;
      }
      if (on_gpu && options.engine.empty() && repeats_prologue(region) &&
          !prologue_pays(region, lowered, limits, table, device, options)) {
        narrowed = true;
        continue;
      }
      if (!is_too_large(region)) continue;
      const std::string reason = refusals(region, lowered.graph, table, device);
      for (NodeId id : region.nodes) {
        const Op& op = lowered.graph.nodes()[static_cast<std::size_t>(id)].op;
        const bool is_step =
            std::holds_alternative<Pointwise>(op) ||
            (std::holds_alternative<Rng>(op) && !region.anchor_as<Rng>()) ||
            (std::holds_alternative<DropoutForward>(op) && !region.anchor_as<DropoutForward>()) ||
            (std::holds_alternative<BlockScaleDequantize>(op) &&
             !region.anchor_as<BlockScaleDequantize>());
        if (region.anchor && is_step) continue;
        FusionLimits& limit = limits[static_cast<std::size_t>(id)];
        narrowed = narrowed || limit.prologue || limit.epilogue;
        limit.reason = reason;
        // Drop the prologue first, then the epilogue.
        limit.epilogue = limit.epilogue && limit.prologue;
        limit.prologue = false;
      }
    }
    if (!narrowed) return regions;
  }
}

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
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const int step = static_cast<int>(i);
      for (TensorId id : plan_.steps[i].region.writes) {
        const Tensor& tensor = plan_.lowered.graph.tensor(id);
        if (tensor.kind != TensorKind::intermediate || intermediates_.contains(id)) continue;
        const std::int64_t gap = plan_.options.guard ? 2 * kGuardBytes : 0;
        intermediates_[id] = buffers_.size();
        const std::int64_t bytes = byte_size(tensor);
        buffers_.push_back(
            {gap ? (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + gap : bytes, step,
             step});
      }
      for (TensorId id : plan_.steps[i].region.reads)
        if (const auto found = intermediates_.find(id); found != intermediates_.end())
          buffers_[found->second].last_step = step;
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
  auto plan = std::make_shared<PlanData>();
  plan->graph = graph.clone();
  plan->lowered =
      lower(graph, options.fuse, !options.reference_only, plan_engines(options, table, device));
  plan->backend = &backend;
  plan->device = device;
  plan->options = options;
  plan->bound = graph.bound_tensors();

  std::vector<Region> regions =
      partition_for_device(plan->lowered, table, device, options, plan->limits);
  if (saved && saved->size() != regions.size())
    fail(ErrorCode::invalid_argument,
         "plan: got {} saved regions, expected {} from this version; compile the graph again",
         saved->size(), regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    Choice choice =
        saved ? select_saved(regions[i], table, device, (*saved)[i].engine, (*saved)[i].knobs)
        : options.tune && build_kernels ? tune(plan->lowered, regions[i], backend, device, options)
                                        : select(regions[i], table, device, options);
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
