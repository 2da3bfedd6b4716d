#include "plan/device_partition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace ashlar {

namespace {

std::string estimate_text(double seconds) {
  if (std::isinf(seconds)) return "no engine";
  return fmt::format("{:.3g} us", seconds * 1e6);
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

class DevicePartitioner {
 public:
  DevicePartitioner(const LoweredGraph& lowered, EngineChoices& engines,
                    std::vector<FusionLimits>& limits)
      : lowered_(lowered),
        dependencies_(lowered),
        engines_(engines),
        limits_(limits),
        fuses_(engines.options().fuse),
        on_gpu_(fuses_ && engines.device().kind == DeviceKind::cuda) {}

  std::vector<Region> run() {
    const CompileOptions& options = engines_.options();
    limits_.assign(lowered_.graph.nodes().size(),
                   FusionLimits{fuses_, fuses_, on_gpu_, on_gpu_ && !options.reference_only});
    end_regions();
    while (true) {
      regions_ = partition(lowered_, dependencies_, limits_);
      if (!fuses_ || engines_.table().empty()) return std::move(regions_);
      index_regions();
      bool narrowed = false;
      for (const Region& region : regions_) narrowed = narrow(region) || narrowed;
      if (!narrowed) return std::move(regions_);
    }
  }

 private:
  void end_regions() {
    for (std::size_t id = 0; id < limits_.size(); ++id) {
      const auto result = static_cast<std::size_t>(lowered_.graph.nodes()[id].outputs[0]);
      if (result >= lowered_.unfused.size() || !lowered_.unfused[result]) continue;
      limits_[id].epilogue = false;
      limits_[id].reason = "an in-place output is written behind it";
    }
  }

  // Returns whether a limit of the region's nodes changed.
  bool narrow(const Region& region) {
    if (!region.reductions.empty() && !tails_pay(region)) return true;
    if (on_gpu_ && engines_.options().engine.empty() && repeats_prologue(region) &&
        !prologue_pays(region))
      return true;
    return is_too_large(region) && refuse(region);
  }

  // For a region with tail reductions: returns true if fusing them pays off. Otherwise narrows the
  // limits: drops the prologue if it keeps engines from supporting the reductions, or else the
  // reductions.
  bool tails_pay(const Region& region) {
    const double whole = seconds(region, nullptr), less = seconds(region, &FusionLimits::prologue),
                 least = seconds(region, &FusionLimits::tail);
    if (whole <= std::min(less, least)) return true;
    drop(region, less < least ? &FusionLimits::prologue : &FusionLimits::tail, whole,
         std::min(less, least));
    return false;
  }

  // For a region whose anchor repeats its prologue: returns true if fusing the prologue pays off.
  // Recomputing it may cost more than a round trip through memory.
  bool prologue_pays(const Region& region) {
    const double fused = seconds(region, nullptr),
                 separate = seconds(region, &FusionLimits::prologue);
    if (fused <= separate) return true;
    drop(region, &FusionLimits::prologue, fused, separate);
    return false;
  }

  void drop(const Region& region, bool FusionLimits::*fusion, double fused, double separate) {
    for (const NodeId id : region.nodes) {
      limit(id).*fusion = false;
      limit(id).reason = fmt::format("estimated {} fused, {} unfused", estimate_text(fused),
                                     estimate_text(separate));
    }
  }

  // Estimated time of all regions that contain a node of `region`, if `fusion` is dropped for its
  // nodes. Infinite if a region with tail reductions is not selected for a specialised engine, or
  // not for the engine the caller requested.
  double seconds(const Region& region, bool FusionLimits::*fusion) {
    std::vector<FusionLimits> before;
    for (const NodeId id : region.nodes) {
      before.push_back(limit(id));
      if (fusion != nullptr) limit(id).*fusion = false;
    }
    const std::vector<Region> around =
        partition_window(lowered_, dependencies_, limits_, window_of(region));
    for (std::size_t i = 0; i < region.nodes.size(); ++i)
      limit(region.nodes[i]) = std::move(before[i]);

    const std::string& wanted = engines_.options().engine;
    double total = 0;
    for (const Region& part : around) {
      if (std::find_first_of(part.nodes.begin(), part.nodes.end(), region.nodes.begin(),
                             region.nodes.end()) == part.nodes.end())
        continue;
      const Choice& choice = engines_.select(part);
      const bool is_taken = choice.engine && !is_last_resort(choice.engine->kind()) &&
                            (wanted.empty() || choice.engine->id() == wanted);
      if (!part.reductions.empty() && !is_taken) return std::numeric_limits<double>::infinity();
      // Last-resort engines launch several kernels, which their estimates do not include.
      constexpr double kFewLaunches = 5e-6;
      const bool is_last = choice.engine && is_last_resort(choice.engine->kind());
      total += is_last ? std::max(choice.seconds, kFewLaunches) : choice.seconds;
    }
    return total;
  }

  // The region, the regions next to it and those next to them: where its nodes may end up when a
  // fusion is dropped, and what may take their place.
  std::vector<NodeId> window_of(const Region& region) const {
    std::set<std::size_t> around = {region_of(region.nodes[0])};
    for (int distance = 0; distance < 2; ++distance) {
      const std::set<std::size_t> inner = around;
      for (const std::size_t index : inner)
        for (const NodeId id : regions_[index].nodes) add_neighbours(id, around);
    }
    std::vector<NodeId> nodes;
    for (const std::size_t index : around)
      nodes.insert(nodes.end(), regions_[index].nodes.begin(), regions_[index].nodes.end());
    std::ranges::sort(nodes);
    return nodes;
  }
  void add_neighbours(NodeId id, std::set<std::size_t>& around) const {
    for (const TensorId input : dependencies_.reads(id)) {
      const NodeId writer = dependencies_.writer(input);
      if (writer == kNoNode) continue;
      around.insert(region_of(writer));
      for (const NodeId reader : dependencies_.readers(input)) around.insert(region_of(reader));
    }
    for (const TensorId output : lowered_.graph.nodes()[static_cast<std::size_t>(id)].outputs)
      if (output != kNoTensor)
        for (const NodeId reader : dependencies_.readers(output)) around.insert(region_of(reader));
  }

  // Whether engines that are no last resort refuse the region although they take a part of it.
  bool is_too_large(const Region& region) {
    if (region.nodes.size() == 1 || engines_.has_specialised(region)) return false;
    if (!engines_.has_more_than_reference(region)) return true;
    if (!region.anchor) return false;
    if (unfused_.empty()) unfused_.assign(limits_.size(), FusionLimits{false, false});
    return std::ranges::any_of(region.nodes, [&](NodeId id) {
      const std::vector<Region> one =
          partition_window(lowered_, dependencies_, unfused_, std::span(&id, 1));
      return one[0].anchor && engines_.has_specialised(one[0]);
    });
  }

  // Drops the prologue of the region first, then the epilogue. Returns whether either was allowed.
  bool refuse(const Region& region) {
    const std::string reason = refusals(region);
    bool narrowed = false;
    for (const NodeId id : region.nodes) {
      const Op& op = lowered_.graph.nodes()[static_cast<std::size_t>(id)].op;
      const bool is_step =
          std::holds_alternative<Pointwise>(op) ||
          (std::holds_alternative<Rng>(op) && !region.anchor_as<Rng>()) ||
          (std::holds_alternative<DropoutForward>(op) && !region.anchor_as<DropoutForward>()) ||
          (std::holds_alternative<BlockScaleDequantize>(op) &&
           !region.anchor_as<BlockScaleDequantize>());
      if (region.anchor && is_step) continue;
      FusionLimits& one = limit(id);
      narrowed = narrowed || one.prologue || one.epilogue;
      one.reason = reason;
      one.epilogue = one.epilogue && one.prologue;
      one.prologue = false;
    }
    return narrowed;
  }

  // The refusals of the specialised engines for the region's operation.
  std::string refusals(const Region& region) const {
    std::string text;
    for (const Engine* engine : engines_.table()) {
      if (is_last_resort(engine->kind())) continue;
      const Support support = engine->supports(region, engines_.device());
      if (support || support.is_other_operation()) continue;
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", engine->id(), support.reason());
    }
    return fmt::format("no specialised engine supports {} ({})", region.to_text(lowered_.graph),
                       text);
  }

  void index_regions() {
    region_of_.assign(lowered_.graph.nodes().size(), 0);
    for (std::size_t i = 0; i < regions_.size(); ++i)
      for (const NodeId id : regions_[i].nodes) region_of_[static_cast<std::size_t>(id)] = i;
  }
  std::size_t region_of(NodeId id) const { return region_of_[static_cast<std::size_t>(id)]; }
  FusionLimits& limit(NodeId id) { return limits_[static_cast<std::size_t>(id)]; }

  const LoweredGraph& lowered_;
  const Dependencies dependencies_;
  EngineChoices& engines_;
  std::vector<FusionLimits>& limits_;
  const bool fuses_, on_gpu_;
  std::vector<Region> regions_;
  std::vector<std::size_t> region_of_;  // by node
  std::vector<FusionLimits> unfused_;   // no fusion of any node; empty until it is needed
};

}  // namespace

std::vector<Region> partition_for_device(const LoweredGraph& lowered, EngineChoices& engines,
                                         std::vector<FusionLimits>& limits) {
  return DevicePartitioner(lowered, engines, limits).run();
}

}  // namespace ashlar
