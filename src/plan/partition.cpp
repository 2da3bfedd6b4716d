// The partitioner: grows groups of nodes around anchors and builds their regions.
#include "plan/partition.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "graph/op_traits.hpp"
#include "plan/execution_order.hpp"
#include "plan/partition_groups.hpp"
#include "plan/program_builder.hpp"
#include "plan/tail_reduction.hpp"

namespace ashlar {

namespace {

class Partitioner : public PartitionGroups {
 public:
  using PartitionGroups::PartitionGroups;

  // `window`: the nodes to partition, in ascending order; all others stay outside.
  void grow_window(std::span<const NodeId> window) {
    window_ = window;
    std::ranges::fill(group_of_, kOutside);
    for (const NodeId id : window) group_of_[static_cast<std::size_t>(id)] = kNoGroup;
    grow_in_window();
  }
  void grow_all() {
    all_.resize(nodes_.size());
    std::iota(all_.begin(), all_.end(), NodeId{0});
    window_ = all_;
    grow_in_window();
  }

  std::vector<Region> regions() const {
    std::vector<Region> regions;
    for (const Group& group : groups_) regions.push_back(build(group));
    return regions;
  }
  std::vector<Region> ordered_regions() const {
    std::vector<NodeId> positions;
    for (const Group& group : groups_) positions.push_back(seed_of(group));
    return in_execution_order(lowered_, regions(), positions);
  }

 private:
  void grow_in_window() {
    seed_anchors();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      grow_epilogue(static_cast<int>(g));
      join_tails(static_cast<int>(g));
    }
    seed_unfused([&](NodeId id) { return is_tail(id); });
    seed_unfused([&](NodeId id) { return is_dropout(id); });
    for (std::size_t g = 0; g < groups_.size(); ++g) grow_prologues(static_cast<int>(g));
    for (const int g : seed_unfused([&](NodeId id) { return is_dequantization(id); }))
      grow_prologues(g);
    seed_pointwise();
  }

  // A new group around an anchor.
  int seed(NodeId id) {
    const int g = static_cast<int>(groups_.size());
    groups_.push_back({id, {}, {}, tensor(node(id).outputs[0]).dims});
    assign(id, g);
    return g;
  }
  void seed_anchors() {
    for (const NodeId id : window_)
      if (!is_program_step(id) && !is_tail(id)) seed(id);
  }

  void join_tails(int g) {
    Group& group = groups_[static_cast<std::size_t>(g)];
    if (!traits_of(node(group.anchor).op).has_tails) return;
    std::size_t count = 0;
    for (const NodeId id : readers_of(g)) {
      if (group_of(id) != kNoGroup || !is_tail(id) || !is_value_of(g, node(id).inputs[0])) continue;
      if (tensor(node(id).inputs[0]).dims != group.space || runs_later(g, id)) continue;
      count += tail_parts(node(id)).size();
      if (count > kMaxTailReductions) return;
      group.tails.insert(id);
      assign(id, g);
    }
  }

  // Groups for anchors that were not fused into another group.
  template <class Wanted>
  std::vector<int> seed_unfused(const Wanted& is_wanted) {
    std::vector<int> seeded;
    for (const NodeId id : window_) {
      if (group_of(id) != kNoGroup || !is_wanted(id)) continue;
      seeded.push_back(seed(id));
      grow_epilogue(seeded.back());
    }
    return seeded;
  }

  bool can_join(int g, NodeId id) const { return is_free(id) && !epilogue_obstacle(g, id); }

  void join(int g, NodeId id) {
    groups_[static_cast<std::size_t>(g)].after.insert(id);
    assign(id, g);
  }

  // Adds pointwise producers read by this epilogue only, if they do not depend on the group.
  void join_side_producers(int g, NodeId id) {
    for (TensorId input : dependencies_.reads(id)) {
      const NodeId producer = producer_of(input);
      if (producer == kNoNode || is_value_of(g, input) || view(input).tensor != input ||
          !can_join(g, producer))
        continue;
      bool only_here = true;
      for (NodeId reader : dependencies_.readers(input))
        only_here = only_here && groups_[static_cast<std::size_t>(g)].after.contains(reader);
      if (!only_here) continue;
      join(g, producer);
      join_side_producers(g, producer);
    }
  }

  bool reads_value_of(int g, NodeId id) const {
    const auto reads = dependencies_.reads(id);
    return std::any_of(reads.begin(), reads.end(),
                       [&](TensorId input) { return is_value_of(g, input); });
  }

  // Adds the nodes that read what `id` computes.
  void add_readers(NodeId id, std::set<NodeId>& readers) const {
    for (const TensorId result : node(id).outputs)
      if (result != kNoTensor)
        for (const NodeId reader : dependencies_.readers(result)) readers.insert(reader);
  }
  // The nodes that read a value of the epilogue.
  std::set<NodeId> readers_of(int g) const {
    const Group& group = this->group(g);
    std::set<NodeId> readers;
    if (group.anchor != kNoNode) add_readers(group.anchor, readers);
    for (const NodeId id : group.after) add_readers(id, readers);
    return readers;
  }

  // In ascending order, again and again until no reader of a value can join.
  void grow(int g) {
    std::set<NodeId> readers = readers_of(g);
    for (bool grew = true; grew;) {
      grew = false;
      for (auto next = readers.begin(); next != readers.end();) {
        const NodeId id = *next;
        if (!is_free(id)) {
          next = readers.erase(next);
          continue;
        }
        ++next;
        if (!reads_value_of(g, id) || !can_join(g, id)) continue;
        join(g, id);
        join_side_producers(g, id);
        add_readers(id, readers);
        next = readers.upper_bound(id);
        grew = true;
      }
    }
  }

  void grow_epilogue(int g) {
    const NodeId anchor = groups_[static_cast<std::size_t>(g)].anchor;
    const TensorId result = node(anchor).outputs[0];
    if (limits(anchor).epilogue && view(result).ragged_offset == kNoTensor) grow(g);
  }

  void grow_prologues(int g) {
    const NodeId anchor = groups_[static_cast<std::size_t>(g)].anchor;
    if (!limits(anchor).prologue) return;
    const OpTraits& traits = traits_of(node(anchor).op);
    int slot = -1;
    for (const TensorId input : node(anchor).inputs) {
      if (!traits.fused_inputs.contains(++slot) || input == kNoTensor) continue;
      std::set<NodeId> nodes;
      collect_prologue(anchor, anchor, input, tensor(input).dims, nodes,
                       traits.stores(node(anchor).op, slot));
      if (nodes.empty()) continue;
      const double flops = program_of(nodes, input).flops_per_element();
      constexpr double kCheapFlops = 4;  // per element: few enough to be computed many times
      if (traits.rereads_inputs && flops > kCheapFlops) continue;
      for (NodeId id : nodes) assign(id, g);
      groups_[static_cast<std::size_t>(g)].before.emplace_back(slot, std::move(nodes));
    }
  }

  // Adds the producer of `input` and its operands, recursively, to `nodes` while they have no other
  // reader.
  void collect_prologue(NodeId anchor, NodeId reader, TensorId input, const Dims& space,
                        std::set<NodeId>& nodes, bool may_be_output = false) {
    const NodeId producer = producer_of(input);
    if (!is_free(producer) || prologue_obstacle(anchor, reader, input, space, nodes, may_be_output))
      return;
    nodes.insert(producer);
    for (TensorId operand : dependencies_.reads(producer))
      collect_prologue(anchor, producer, operand, space, nodes);
  }

  PointwiseProgram program_of(const std::set<NodeId>& nodes, TensorId result) const {
    ProgramBuilder builder(lowered_, tensor(result).dims);
    for (NodeId id : nodes) builder.add(node(id));
    builder.set_result(result);
    if (tensor(result).kind == TensorKind::output) builder.store(result);
    return builder.take();
  }

  void seed_pointwise() {
    for (const NodeId id : window_) {
      if (group_of(id) != kNoGroup) continue;
      const int g = static_cast<int>(groups_.size());
      groups_.push_back({kNoNode, {}, {}, tensor(node(id).outputs[0]).dims});
      const bool may_grow = is_free(id);
      join(g, id);
      if (may_grow) grow(g);
    }
  }

  // A value is stored if it is an output or another region reads it.
  bool is_needed_outside(const Group& group, TensorId id) const {
    if (tensor(id).kind == TensorKind::output || view(id).tensor != id) return true;
    const int g = group_of(seed_of(group));
    const auto& readers = dependencies_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      // No node of this group reads the value through a view of its memory: the rules forbid it.
      return group_of(reader) != g;
    });
  }

  Region build(const Group& group) const {
    Region region;
    for_each_node(group, [&](NodeId id) { region.nodes.push_back(id); });
    std::sort(region.nodes.begin(), region.nodes.end());
    ProgramBuilder builder(lowered_, group.space);
    if (group.anchor != kNoNode) {
      const Node& anchor_node = node(group.anchor);
      Anchor anchor{anchor_node.op, anchor_node.compute, {}, {}};
      for (TensorId id : anchor_node.inputs) {
        anchor.inputs.push_back(id == kNoTensor ? View{} : view(id));
        region.prologues.push_back(id == kNoTensor ? PointwiseProgram{} : plain_load(view(id)));
      }
      for (const auto& [slot, nodes] : group.before)
        region.prologues[static_cast<std::size_t>(slot)] =
            program_of(nodes, anchor_node.inputs[static_cast<std::size_t>(slot)]);
      for (TensorId id : anchor_node.outputs)
        anchor.outputs.push_back(id == kNoTensor ? View{} : view(id));
      region.anchor = std::move(anchor);
      builder.set_accumulator(anchor_node.outputs[0]);
      if ((group.after.empty() && group.tails.empty()) ||
          is_needed_outside(group, anchor_node.outputs[0]))
        builder.store(anchor_node.outputs[0]);
    }
    for (NodeId id : group.after) builder.add(node(id));
    for (NodeId id : group.after)
      for (TensorId result : node(id).outputs)
        if (result != kNoTensor && is_needed_outside(group, result)) builder.store(result);
    for (NodeId id : group.tails) add_tail(lowered_, node(id), builder, region.reductions);
    region.epilogue = builder.take();
    move_as_bits(region);
    collect_memory(region);
    return region;
  }

  static void collect_memory(Region& region) {
    std::set<TensorId> reads, writes;
    const auto add_program = [&](const PointwiseProgram& program) {
      for (const auto& step : program.steps) {
        for (const View* number : {&step.seed, &step.offset})
          if (number->present()) reads.insert(number->tensor);
        if (step.kind != PointwiseProgram::Step::Kind::load) continue;
        reads.insert(step.view.tensor);
        if (step.view.ragged_offset != kNoTensor) reads.insert(step.view.ragged_offset);
      }
      for (const auto& store : program.stores) {
        writes.insert(store.view.tensor);
        if (store.view.ragged_offset != kNoTensor) reads.insert(store.view.ragged_offset);
      }
    };
    for (const PointwiseProgram& prologue : region.prologues) add_program(prologue);
    add_program(region.epilogue);
    for (const TailReduction& reduction : region.reductions) add_program(reduction.finish);
    if (region.anchor)
      for (std::size_t slot = 1; slot < region.anchor->outputs.size(); ++slot)
        if (region.anchor->outputs[slot].present())
          writes.insert(region.anchor->outputs[slot].tensor);
    region.reads.assign(reads.begin(), reads.end());
    region.writes.assign(writes.begin(), writes.end());
  }

  std::vector<NodeId> all_;
  std::span<const NodeId> window_;
};

}  // namespace

PartitionGroups grow_groups(const LoweredGraph& lowered, const Dependencies& dependencies,
                            const std::vector<FusionLimits>& limits) {
  Partitioner groups(lowered, dependencies, limits);
  groups.grow_all();
  return groups;
}

std::vector<Region> partition(const LoweredGraph& lowered, const Dependencies& dependencies,
                              const std::vector<FusionLimits>& limits) {
  Partitioner groups(lowered, dependencies, limits);
  groups.grow_all();
  return groups.ordered_regions();
}

std::vector<Region> partition(const LoweredGraph& lowered,
                              const std::vector<FusionLimits>& limits) {
  return partition(lowered, Dependencies(lowered), limits);
}

std::vector<Region> partition_window(const LoweredGraph& lowered, const Dependencies& dependencies,
                                     const std::vector<FusionLimits>& limits,
                                     std::span<const NodeId> window) {
  Partitioner groups(lowered, dependencies, limits);
  groups.grow_window(window);
  return groups.regions();
}

}  // namespace ashlar
