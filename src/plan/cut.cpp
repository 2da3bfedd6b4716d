#include "plan/cut.hpp"

#include <algorithm>
#include <queue>
#include <set>

#include "plan/dependencies.hpp"
#include "plan/fusion_rules.hpp"
#include "plan/program_builder.hpp"
#include "plan/tail_reduction.hpp"

namespace ashlar {

namespace {

// Nodes that will become one region. Pointwise nodes of an anchored group stand either before it
// (prologue, for one input slot) or after it.
struct Group {
  NodeId anchor = kNoNode;
  std::set<NodeId> after;
  std::vector<std::pair<int, std::set<NodeId>>> before;  // input slot, its nodes
  Dims space;
  std::set<NodeId> tails = {};  // reductions of values of the epilogue
};

class Cutter {
 public:
  Cutter(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits)
      : lowered_(lowered),
        nodes_(lowered.graph.nodes()),
        dependencies_(lowered),
        limits_(limits),
        group_of_(nodes_.size(), -1) {}

  std::vector<Region> run() {
    seed_anchors();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      grow_epilogue(static_cast<int>(g));
      join_tails(static_cast<int>(g));
    }
    seed_tails();
    seed_dropouts();
    for (std::size_t g = 0; g < groups_.size(); ++g) grow_prologues(static_cast<int>(g));
    seed_dequantizations();
    seed_pointwise();
    std::vector<Region> regions;
    for (int g : execution_order()) regions.push_back(build(groups_[static_cast<std::size_t>(g)]));
    return regions;
  }

 private:
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return lowered_.graph.tensor(id); }
  const View& view(TensorId id) const { return lowered_.views[static_cast<std::size_t>(id)]; }
  int group_of(NodeId id) const { return group_of_[static_cast<std::size_t>(id)]; }
  bool is_pointwise(NodeId id) const { return std::holds_alternative<Pointwise>(node(id).op); }
  // Random numbers that only pointwise work of their own shape reads are a step of its program.
  bool is_random_step(NodeId id) const {
    if (!std::holds_alternative<Rng>(node(id).op) || !may_fuse(id, &FusionLimits::epilogue))
      return false;
    const TensorId y = node(id).outputs[0];
    const auto& readers = dependencies_.readers(y);
    return !readers.empty() && view(y).tensor == y &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
             return is_pointwise(reader) && tensor(node(reader).outputs[0]).dims == tensor(y).dims;
           });
  }
  // Dropout may be a few steps of what comes before it; where it is none, it is an anchor.
  bool is_dropout(NodeId id) const {
    const Node& dropout = node(id);
    return std::holds_alternative<DropoutForward>(dropout.op) &&
           may_fuse(id, &FusionLimits::epilogue) &&
           (dropout.outputs.size() <= DropoutForward::next_offset ||
            dropout.outputs[DropoutForward::next_offset] == kNoTensor);
  }
  // Dequantisation may be two steps before the product that reads it; else it is an anchor.
  bool is_dequantization(NodeId id) const {
    const auto* op = std::get_if<BlockScaleDequantize>(&node(id).op);
    return op != nullptr && op->scale_layout == ScaleLayout::linear &&
           may_fuse(id, &FusionLimits::dequantize);
  }
  bool is_program_step(NodeId id) const {
    return is_pointwise(id) || is_random_step(id) || is_dropout(id) || is_dequantization(id);
  }
  bool may_fuse(NodeId id, bool FusionLimits::*kind) const {
    return limits_[static_cast<std::size_t>(id)].*kind;
  }
  bool is_free(NodeId id) const {
    return id != kNoNode && is_program_step(id) && group_of(id) < 0 &&
           may_fuse(id, &FusionLimits::epilogue);
  }

  void seed_anchors() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (is_program_step(static_cast<NodeId>(i)) || is_tail(static_cast<NodeId>(i))) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back({static_cast<NodeId>(i), {}, {}, tensor(nodes_[i].outputs[0]).dims});
    }
  }

  // A reduction of what became of a product.
  bool is_tail(NodeId id) const {
    return may_fuse(id, &FusionLimits::tail) && can_be_tail(node(id)) &&
           comes_from_product(node(id).inputs[0]);
  }
  bool comes_from_product(TensorId id) const {
    const Dims& space = tensor(id).dims;
    std::set<TensorId> seen;
    std::vector<TensorId> stack = {id};
    while (!stack.empty()) {
      const TensorId value = stack.back();
      stack.pop_back();
      const NodeId producer = dependencies_.writer(value);
      if (producer == kNoNode || tensor(value).dims != space || !seen.insert(value).second)
        continue;
      if (may_have_tails(node(producer).op)) return true;
      if (!is_pointwise(producer)) continue;
      for (TensorId input : dependencies_.reads(producer)) stack.push_back(input);
    }
    return false;
  }

  void join_tails(int g) {
    Group& group = groups_[static_cast<std::size_t>(g)];
    if (!may_have_tails(node(group.anchor).op)) return;
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (group_of(id) >= 0 || !is_tail(id) || !is_value_of(g, node(id).inputs[0])) continue;
      if (tensor(node(id).inputs[0]).dims != group.space) continue;
      count += tail_count(node(id));
      if (count > kMostTailReductions) return;
      group.tails.insert(id);
      group_of_[i] = g;
    }
  }

  // Those that joined nothing.
  void seed_tails() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (group_of_[i] >= 0 || !is_tail(static_cast<NodeId>(i))) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back({static_cast<NodeId>(i), {}, {}, tensor(nodes_[i].outputs[0]).dims});
      grow_epilogue(group_of_[i]);
    }
  }

  // Those that joined nothing.
  void seed_dropouts() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (group_of_[i] >= 0 || !is_dropout(static_cast<NodeId>(i))) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back({static_cast<NodeId>(i), {}, {}, tensor(nodes_[i].outputs[0]).dims});
      grow_epilogue(group_of_[i]);
    }
  }

  // Those that joined nothing.
  void seed_dequantizations() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (group_of_[i] >= 0 || !is_dequantization(static_cast<NodeId>(i))) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back({static_cast<NodeId>(i), {}, {}, tensor(nodes_[i].outputs[0]).dims});
      grow_epilogue(group_of_[i]);
      grow_prologues(group_of_[i]);
    }
  }

  // Whether `from` needs something that group `g` computes.
  bool depends_on(NodeId from, int g) const {
    std::vector<char> seen(nodes_.size(), 0);
    std::vector<NodeId> stack = {from};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (seen[static_cast<std::size_t>(id)]) continue;
      seen[static_cast<std::size_t>(id)] = 1;
      if (group_of(id) == g) return true;
      // A group runs as a whole: needing one of its nodes is needing all they read.
      if (group_of(id) >= 0)
        for_each_node(groups_[static_cast<std::size_t>(group_of(id))],
                      [&](NodeId other) { stack.push_back(other); });
      for (TensorId input : dependencies_.reads(id))
        if (dependencies_.writer(input) != kNoNode) stack.push_back(dependencies_.writer(input));
    }
    return false;
  }

  template <class Visit>
  static void for_each_node(const Group& group, Visit&& visit) {
    if (group.anchor != kNoNode) visit(group.anchor);
    for (const auto& [slot, nodes] : group.before)
      for (NodeId id : nodes) visit(id);
    for (NodeId id : group.after) visit(id);
    for (NodeId id : group.tails) visit(id);
  }

  // The node that computes `id` as it is, not through a view of its memory.
  NodeId producer_of(TensorId id) const {
    return GraphAccess::data(lowered_.graph).producers[static_cast<std::size_t>(id)];
  }

  // `id` is a value the epilogue holds in a register.
  bool is_value_of(int g, TensorId id) const {
    const Group& group = groups_[static_cast<std::size_t>(g)];
    const NodeId producer = producer_of(id);
    if (producer == kNoNode) return false;
    return group.after.contains(producer) ||
           (producer == group.anchor && node(producer).outputs[0] == id);
  }

  // Whether all operands of `id` are values of the group or can be loaded before it runs.
  bool can_join(int g, NodeId id) const {
    const Group& group = groups_[static_cast<std::size_t>(g)];
    if (is_dequantization(id)) return false;
    if (!is_free(id) || tensor(node(id).outputs[0]).dims != group.space || !has_room(group, id))
      return false;
    if ((is_random_step(id) || is_dropout(id)) && group.anchor != kNoNode &&
        !may_draw(node(group.anchor).op))
      return false;
    for (TensorId input : dependencies_.reads(id)) {
      if (is_value_of(g, input)) continue;
      const NodeId writer = dependencies_.writer(input);
      if (writer != kNoNode && (group_of(writer) == g || depends_on(writer, g))) return false;
    }
    return true;
  }

  // Whether the program still fits its limits with `id`: a node adds one step, one store and its
  // new loads at most.
  bool has_room(const Group& group, NodeId id) const {
    std::set<TensorId> operands;
    const auto add_reads = [&](NodeId from) {
      for (TensorId input : dependencies_.reads(from)) operands.insert(input);
    };
    const auto draws = [&](NodeId from) { return is_random_step(from) || is_dropout(from); };
    int randoms = draws(id) ? 1 : 0;
    for (NodeId other : group.after) {
      add_reads(other);
      randoms += draws(other) ? 1 : 0;
    }
    add_reads(id);
    const int computed = static_cast<int>(group.after.size()) + 1,
              loaded = static_cast<int>(operands.size());
    constexpr int kStepsOfDropout = 5;
    return loaded <= kMaxProgramLoads && computed + randoms < kMaxProgramStores &&
           computed + loaded + kStepsOfDropout * randoms < kMaxProgramSteps &&
           randoms <= kMaxProgramRandoms;
  }

  void join(int g, NodeId id) {
    groups_[static_cast<std::size_t>(g)].after.insert(id);
    group_of_[static_cast<std::size_t>(id)] = g;
  }

  // A pointwise node computed for this epilogue alone (the anchor would need it earlier), from
  // things that do not need the group.
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

  void grow(int g) {
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const auto id = static_cast<NodeId>(i);
        if (!is_free(id) || !reads_value_of(g, id) || !can_join(g, id)) continue;
        join(g, id);
        join_side_producers(g, id);
        grew = true;
      }
    }
  }

  void grow_epilogue(int g) {
    const NodeId anchor = groups_[static_cast<std::size_t>(g)].anchor;
    const TensorId result = node(anchor).outputs[0];
    if (may_fuse(anchor, &FusionLimits::epilogue) && view(result).ragged_offset == kNoTensor)
      grow(g);
  }

  void grow_prologues(int g) {
    const NodeId anchor = groups_[static_cast<std::size_t>(g)].anchor;
    if (!may_fuse(anchor, &FusionLimits::prologue)) return;
    for (int slot : fusible_inputs(node(anchor).op)) {
      const TensorId input = node(anchor).inputs[static_cast<std::size_t>(slot)];
      if (input == kNoTensor) continue;
      std::set<NodeId> nodes;
      collect_prologue(anchor, anchor, input, tensor(input).dims, nodes,
                       may_store_input(node(anchor).op, slot));
      if (nodes.empty()) continue;
      const double flops = program_of(nodes, input).flops_per_element();
      if (reads_inputs_often(node(anchor).op) && flops > kCheapFlops) continue;
      for (NodeId id : nodes) group_of_[static_cast<std::size_t>(id)] = g;
      groups_[static_cast<std::size_t>(g)].before.emplace_back(slot, std::move(nodes));
    }
  }

  // Adds the producer of `input` and what it needs to `nodes`, as long as nothing else reads them.
  void collect_prologue(NodeId anchor, NodeId reader, TensorId input, const Dims& space,
                        std::set<NodeId>& nodes, bool may_be_output = false) {
    const NodeId producer = producer_of(input);
    if (!is_free(producer) || view(input).tensor != input) return;
    const bool dequantizes = is_dequantization(producer);
    if (!dequantizes && !is_pointwise(producer)) return;
    if (dequantizes && !may_dequantize(node(anchor).op)) return;
    if (tensor(input).kind == TensorKind::output && !may_be_output) return;
    if (tensor(input).dims != space || nodes.size() >= kMaxPrologueNodes) return;
    for (NodeId other : dependencies_.readers(input))
      if (other != reader && !nodes.contains(other)) return;
    // An operand read twice by the anchor (x and dy, say) is better computed once.
    if (reader == anchor && dependencies_.readers(input).size() != 1) return;
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
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (group_of_[i] >= 0) continue;
      const int g = static_cast<int>(groups_.size());
      groups_.push_back({kNoNode, {}, {}, tensor(nodes_[i].outputs[0]).dims});
      const bool may_grow = is_free(static_cast<NodeId>(i));
      join(g, static_cast<NodeId>(i));
      if (may_grow) grow(g);
    }
  }

  std::vector<int> execution_order() const {
    std::vector<std::set<int>> after(groups_.size());
    std::vector<int> waiting(groups_.size(), 0);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for_each_node(groups_[g], [&](NodeId id) {
        for (TensorId input : dependencies_.reads(id)) {
          const NodeId writer = dependencies_.writer(input);
          if (writer == kNoNode || group_of(writer) == static_cast<int>(g)) continue;
          if (after[static_cast<std::size_t>(group_of(writer))].insert(static_cast<int>(g)).second)
            ++waiting[g];
        }
      });
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (waiting[g] == 0) ready.push(static_cast<int>(g));
    std::vector<int> order;
    while (!ready.empty()) {
      const int g = ready.top();
      ready.pop();
      order.push_back(g);
      for (int next : after[static_cast<std::size_t>(g)])
        if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push(next);
    }
    return order;
  }

  // A value is stored when the user asked for it or another region reads it.
  bool is_needed_outside(const Group& group, TensorId id) const {
    if (tensor(id).kind == TensorKind::output || view(id).tensor != id) return true;
    const int g = group_of(group.anchor != kNoNode ? group.anchor : *group.after.begin());
    const auto& readers = dependencies_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      // A node of this group that reads the memory through a view, not the register, cannot be
      // here: can_join refuses it.
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

  static constexpr std::size_t kMaxPrologueNodes = 8;

  const LoweredGraph& lowered_;
  const std::vector<Node>& nodes_;
  Dependencies dependencies_;
  const std::vector<FusionLimits>& limits_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<Region> cut(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits) {
  return Cutter(lowered, limits).run();
}

}  // namespace ashlar
