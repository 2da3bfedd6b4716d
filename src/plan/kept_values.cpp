// KeptValues: which values could be recomputed.
#include "plan/kept_values.hpp"

#include <algorithm>

#include "graph/graph_data.hpp"
#include "graph/node_shapes.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

namespace {

// Smaller values (statistics of rows) stay: a share of all kept bytes.
constexpr double kSmallShare = 1e-3;

double flops_of(const Graph& graph, const Node& node) {
  const GraphNodeShapes shapes(graph, node);
  if (const auto flops = traits_of(node.op).flops) return flops(shapes);
  constexpr double kPerElement = 8;
  return kPerElement * std::max(count_of(shapes.output(0)),
                                shapes.input_count() == 0 ? 0.0 : count_of(shapes.input(0)));
}

}  // namespace

KeptValues::KeptValues(const LoweredGraph& lowered, const std::vector<Region>& regions)
    : lowered_(lowered), lifetimes_(lowered.graph), step_of_(lowered.graph.nodes().size(), 0) {
  for (std::size_t step = 0; step < regions.size(); ++step) {
    lifetimes_.add(regions[step]);
    for (const NodeId id : regions[step].nodes)
      step_of_[static_cast<std::size_t>(id)] = static_cast<int>(step);
  }
  find_boundary();
}

NodeId KeptValues::producer(TensorId id) const {
  return GraphAccess::data(lowered_.graph).producers[static_cast<std::size_t>(id)];
}

void KeptValues::find_boundary() {
  // Bytes that are kept and not used, by step, as differences.
  std::vector<double> idle;
  const auto at = [&](int step) -> double& {
    const auto index = static_cast<std::size_t>(step);
    if (index >= idle.size()) idle.resize(index + 1, 0.0);
    return idle[index];
  };
  for (const Lifetime& one : lifetimes_.all()) {
    const auto bytes = static_cast<double>(byte_size(lowered_.graph.tensor(one.tensor)));
    for (std::size_t i = 1; i < one.steps.size(); ++i) {
      at(one.steps[i - 1] + 1) += bytes;
      at(one.steps[i]) -= bytes;
    }
  }
  double now = 0;
  for (std::size_t step = 0; step < idle.size(); ++step) {
    now += idle[step];
    if (now <= kept_bytes_) continue;
    kept_bytes_ = now;
    boundary_ = static_cast<int>(step);
  }
  for (const Lifetime& one : lifetimes_.all()) {
    const Tensor& tensor = lowered_.graph.tensor(one.tensor);
    const bool used_then = std::ranges::binary_search(one.steps, boundary_);
    if (one.steps.front() < boundary_ && one.steps.back() > boundary_ && !used_then)
      kept_.push_back({one.tensor, static_cast<double>(byte_size(tensor)), one.steps.front()});
  }
}

std::vector<bool> KeptValues::all_that_stays(const std::vector<bool>& checkpoints) const {
  const auto& tensors = lowered_.graph.tensors();
  std::vector<bool> stays = checkpoints;
  stays.resize(tensors.size(), false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.kind != TensorKind::intermediate || tensor.ragged_offset != kNoTensor)
      stays[i] = true;
    if (tensor.ragged_offset != kNoTensor)
      stays[static_cast<std::size_t>(tensor.ragged_offset)] = true;
  }
  for (const Kept& one : kept_) stays[static_cast<std::size_t>(one.tensor)] = true;
  return stays;
}

std::vector<bool> KeptValues::needed_for(std::span<const TensorId> values,
                                         std::vector<bool> stays) const {
  std::vector<bool> needed(stays.size(), false);
  NodeId last = kNoNode;
  for (const TensorId value : values) {
    stays[static_cast<std::size_t>(value)] = false;
    needed[static_cast<std::size_t>(value)] = true;
    last = std::max(last, producer(value));
  }
  for (NodeId id = last; id >= 0; --id) {
    const Node& one = node(id);
    if (std::ranges::none_of(one.outputs, [&](TensorId output) {
          return output != kNoTensor && needed[static_cast<std::size_t>(output)];
        }))
      continue;
    for (const TensorId input : one.inputs)
      if (input != kNoTensor && !stays[static_cast<std::size_t>(root(input))])
        needed[static_cast<std::size_t>(root(input))] = true;
  }
  return needed;
}

double KeptValues::flops_for(std::span<const TensorId> values,
                             const std::vector<bool>& stays) const {
  const std::vector<bool> needed = needed_for(values, stays);
  double flops = 0;
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) flops += flops_of(lowered_.graph, node(producer(static_cast<TensorId>(i))));
  return flops;
}

std::vector<Recomputed> KeptValues::cheap(const std::vector<bool>& keep) const {
  const std::vector<bool> stays = all_that_stays(keep);
  std::vector<bool> cheap_node(lowered_.graph.nodes().size(), false), available = stays;
  for (std::size_t id = 0; id < cheap_node.size(); ++id) {
    const Node& one = node(static_cast<NodeId>(id));
    cheap_node[id] =
        !traits_of(one.op).is_compute_bound && std::ranges::all_of(one.inputs, [&](TensorId input) {
          return input == kNoTensor || available[static_cast<std::size_t>(root(input))];
        });
    if (!cheap_node[id]) continue;
    for (const TensorId output : one.outputs)
      if (output != kNoTensor) available[static_cast<std::size_t>(output)] = true;
  }
  std::vector<Recomputed> found;
  for (const Kept& one : kept_) {
    const auto tensor = static_cast<std::size_t>(one.tensor);
    if (one.bytes < kSmallShare * kept_bytes_ || (!keep.empty() && keep[tensor]) ||
        lowered_.graph.tensor(one.tensor).ragged_offset != kNoTensor ||
        !cheap_node[static_cast<std::size_t>(producer(one.tensor))])
      continue;
    found.push_back({{one.tensor}, one.bytes, flops_for(std::span(&one.tensor, 1), stays)});
  }
  std::ranges::stable_sort(found, {}, [](const Recomputed& one) { return one.flops / one.bytes; });
  return found;
}

std::size_t KeptValues::segment_of(int step, const Cuts& cuts) {
  return static_cast<std::size_t>(std::ranges::lower_bound(cuts.steps, step) - cuts.steps.begin());
}

// Cuts where the fewest bytes cross, about `segment_bytes` of kept values apart.
KeptValues::Cuts KeptValues::cuts_for(double segment_bytes) const {
  // Bytes that the forward part reads behind a cut, by step; bytes that become kept, by step.
  const auto steps = static_cast<std::size_t>(boundary_) + 1;
  std::vector<double> crossing(steps, 0.0), written(steps, 0.0);
  const auto last_early = [&](const Lifetime& one) {
    return *std::prev(std::ranges::upper_bound(one.steps, boundary_));
  };
  for (const Lifetime& one : lifetimes_.all()) {
    if (one.steps.front() > boundary_) continue;
    const auto bytes = static_cast<double>(byte_size(lowered_.graph.tensor(one.tensor)));
    for (int step = one.steps.front(); step < last_early(one); ++step)
      crossing[static_cast<std::size_t>(step)] += bytes;
  }
  for (const Kept& one : kept_) written[static_cast<std::size_t>(one.step)] += one.bytes;

  Cuts cuts;
  double since_cut = 0, since_best = 0;
  int best = -1;
  for (int step = 0; step < boundary_; ++step) {
    since_cut += written[static_cast<std::size_t>(step)];
    since_best += written[static_cast<std::size_t>(step)];
    if (since_cut < segment_bytes / 2) continue;
    if (best < 0 ||
        crossing[static_cast<std::size_t>(step)] <= crossing[static_cast<std::size_t>(best)]) {
      best = step;
      since_best = 0;
    }
    if (since_cut < segment_bytes) continue;
    cuts.steps.push_back(best);
    since_cut = since_best;
    best = -1;
  }

  cuts.checkpoints.assign(lowered_.graph.tensors().size(), false);
  for (const Lifetime& one : lifetimes_.all()) {
    if (one.steps.front() > boundary_) continue;
    const auto cut = std::ranges::lower_bound(cuts.steps, one.steps.front());
    if (cut == cuts.steps.end() || *cut >= last_early(one)) continue;
    cuts.checkpoints[static_cast<std::size_t>(one.tensor)] = true;
    cuts.peak += static_cast<double>(byte_size(lowered_.graph.tensor(one.tensor)));
  }
  std::vector<double> segments(cuts.steps.size() + 1, 0.0);
  for (const Kept& one : kept_)
    if (!cuts.checkpoints[static_cast<std::size_t>(one.tensor)])
      segments[segment_of(one.step, cuts)] += one.bytes;
  cuts.peak += *std::ranges::max_element(segments);
  return cuts;
}

std::vector<Recomputed> KeptValues::segments(std::vector<bool>& checkpoints) const {
  checkpoints.clear();
  if (kept_.empty()) return {};
  constexpr int kMaxSegments = 64;
  Cuts best;
  for (int count = 2; count <= kMaxSegments; ++count) {
    Cuts cuts = cuts_for(kept_bytes_ / count);
    if (best.steps.empty() || cuts.peak < best.peak) best = std::move(cuts);
  }
  checkpoints = best.checkpoints;
  std::vector<Recomputed> found(best.steps.size());
  for (const Kept& one : kept_) {
    const std::size_t segment = segment_of(one.step, best);
    if (segment == found.size() || checkpoints[static_cast<std::size_t>(one.tensor)] ||
        lowered_.graph.tensor(one.tensor).ragged_offset != kNoTensor ||
        one.bytes < kSmallShare * kept_bytes_)
      continue;
    found[segment].values.push_back(one.tensor);
    found[segment].bytes += one.bytes;
  }
  std::erase_if(found, [](const Recomputed& one) { return one.values.empty(); });
  const std::vector<bool> stays = all_that_stays(checkpoints);
  for (Recomputed& one : found) one.flops = flops_for(one.values, stays);
  std::ranges::stable_sort(found, {}, [](const Recomputed& one) { return one.flops / one.bytes; });
  return found;
}

}  // namespace ashlar
