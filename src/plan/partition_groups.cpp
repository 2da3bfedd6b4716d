// The rules that decide which nodes may join a group.
#include "plan/partition_groups.hpp"

#include <algorithm>

#include "graph/op_traits.hpp"
#include "plan/tail_reduction.hpp"

namespace ashlar {

PartitionGroups::PartitionGroups(const LoweredGraph& lowered, const Dependencies& dependencies,
                                 const std::vector<FusionLimits>& limits)
    : lowered_(lowered),
      nodes_(lowered.graph.nodes()),
      dependencies_(dependencies),
      limits_(limits),
      group_of_(nodes_.size(), kNoGroup),
      crossings_(nodes_.size(), 0),
      visited_(nodes_.size(), 0),
      comes_from_gemm_(lowered.views.size(), -1) {}

NodeId PartitionGroups::producer_of(TensorId id) const {
  return GraphAccess::data(lowered_.graph).producers[static_cast<std::size_t>(id)];
}

bool PartitionGroups::is_random_step(NodeId id) const {
  if (!std::holds_alternative<Rng>(node(id).op) || !limits(id).epilogue) return false;
  const TensorId y = node(id).outputs[0];
  const auto& readers = dependencies_.readers(y);
  return !readers.empty() && view(y).tensor == y &&
         std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
           return is_pointwise(reader) && tensor(node(reader).outputs[0]).dims == tensor(y).dims;
         });
}

bool PartitionGroups::is_dropout(NodeId id) const {
  const Node& dropout = node(id);
  return std::holds_alternative<DropoutForward>(dropout.op) && limits(id).epilogue &&
         (dropout.outputs.size() <= DropoutForward::next_offset ||
          dropout.outputs[DropoutForward::next_offset] == kNoTensor);
}

bool PartitionGroups::is_dequantization(NodeId id) const {
  const auto* op = std::get_if<BlockScaleDequantize>(&node(id).op);
  return op != nullptr && op->scale_layout == ScaleLayout::linear && limits(id).dequantize;
}

bool PartitionGroups::is_free(NodeId id) const {
  return id != kNoNode && is_program_step(id) && group_of(id) == kNoGroup && limits(id).epilogue;
}

void PartitionGroups::assign(NodeId id, int g) {
  group_of_[static_cast<std::size_t>(id)] = g;
  const auto index = static_cast<std::size_t>(g);
  if (index >= spans_.size()) spans_.resize(index + 1, {kNoNode, kNoNode});
  auto& [first, last] = spans_[index];
  if (first == kNoNode) {
    first = last = id;
    return;
  }
  for (; first > id; --first) ++crossings_[static_cast<std::size_t>(first - 1)];
  for (; last < id; ++last) ++crossings_[static_cast<std::size_t>(last)];
}

bool PartitionGroups::is_tail(NodeId id) const {
  if (!limits(id).tail || tail_parts(node(id)).empty()) return false;
  const bool stores_bits = bit_width(tensor(node(id).outputs[0]).dtype) < 8;
  return !stores_bits && comes_from_gemm(node(id).inputs[0]);
}

bool PartitionGroups::comes_from_gemm(TensorId id) const {
  signed char& known = comes_from_gemm_[static_cast<std::size_t>(id)];
  if (known >= 0) return known != 0;
  known = 0;
  const Dims& space = tensor(id).dims;
  std::set<TensorId> seen;
  std::vector<TensorId> stack = {id};
  while (!stack.empty()) {
    const TensorId value = stack.back();
    stack.pop_back();
    const NodeId producer = dependencies_.writer(value);
    if (producer == kNoNode || tensor(value).dims != space || !seen.insert(value).second) continue;
    if (traits_of(node(producer).op).has_tails) {
      known = 1;
      return true;
    }
    if (!is_pointwise(producer)) continue;
    for (TensorId input : dependencies_.reads(producer)) stack.push_back(input);
  }
  return false;
}

bool PartitionGroups::depends_on(NodeId from, int g) const {
  // Nodes are in topological order. No group spans the border below, so nodes up to it depend only
  // on nodes up to it.
  NodeId border = spans_[static_cast<std::size_t>(g)].first - 1;
  while (border >= 0 && crossings_[static_cast<std::size_t>(border)] > 0) --border;
  ++traversal_;
  std::vector<NodeId> stack = {from};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    int& visit = visited_[static_cast<std::size_t>(id)];
    if (id <= border || visit == traversal_) continue;
    visit = traversal_;
    if (group_of(id) == g) return true;
    // A group executes as a unit: depending on one of its nodes means depending on all they read.
    if (group_of(id) >= 0)
      for_each_node(groups_[static_cast<std::size_t>(group_of(id))],
                    [&](NodeId other) { stack.push_back(other); });
    for (TensorId input : dependencies_.reads(id))
      if (dependencies_.writer(input) != kNoNode) stack.push_back(dependencies_.writer(input));
  }
  return false;
}

bool PartitionGroups::runs_later(int g, NodeId id) const {
  if (lowered_.late.empty()) return false;
  const auto is_late = [&](NodeId one) {
    return lowered_.late[static_cast<std::size_t>(node(one).outputs[0])];
  };
  return is_late(id) && !is_late(seed_of(group(g)));
}

bool PartitionGroups::is_value_of(int g, TensorId id) const {
  const Group& group = groups_[static_cast<std::size_t>(g)];
  const NodeId producer = producer_of(id);
  if (producer == kNoNode) return false;
  return group.after.contains(producer) ||
         (producer == group.anchor && node(producer).outputs[0] == id);
}

bool PartitionGroups::has_room(const Group& group, NodeId id) const {
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

const char* PartitionGroups::epilogue_obstacle(int g, NodeId id) const {
  const Group& group = this->group(g);
  if (is_dequantization(id)) return "block scales are fused into GEMM prologues only";
  if (tensor(node(id).outputs[0]).dims != group.space) return "the result has a different shape";
  if (runs_later(g, id)) return "it is recomputed for readers that run later";
  if (!has_room(group, id)) return "the fused program would exceed its size limit";
  if ((is_random_step(id) || is_dropout(id)) && group.anchor != kNoNode &&
      !traits_of(node(group.anchor).op).draws_in_epilogue)
    return "this operation's epilogue does not generate random numbers";
  for (TensorId input : dependencies_.reads(id)) {
    if (is_value_of(g, input)) continue;
    const NodeId writer = dependencies_.writer(input);
    if (writer != kNoNode && (group_of(writer) == g || depends_on(writer, g)))
      return "another operand depends on it";
  }
  return nullptr;
}

const char* PartitionGroups::prologue_obstacle(NodeId anchor, NodeId reader, TensorId input,
                                               const Dims& space, const std::set<NodeId>& nodes,
                                               bool may_be_output) const {
  const NodeId producer = producer_of(input);
  if (producer == kNoNode || view(input).tensor != input) return "it is read through a view";
  const bool dequantizes = is_dequantization(producer);
  if (!dequantizes && !is_pointwise(producer)) return "it is not a pointwise operation";
  if (dequantizes && !traits_of(node(anchor).op).dequantizes_inputs)
    return "block scales are fused into GEMM prologues only";
  if (tensor(input).kind == TensorKind::output && !may_be_output) return "it is also an output";
  constexpr std::size_t kMaxNodes = 8;
  if (tensor(input).dims != space) return "it has a different shape";
  if (nodes.size() >= kMaxNodes) return "the fused program would exceed its size limit";
  const auto& readers = dependencies_.readers(input);
  // An operand that the anchor reads twice (x and dy, say) is better computed once.
  const bool is_shared = std::any_of(readers.begin(), readers.end(), [&](NodeId other) {
    return other != reader && !nodes.contains(other);
  });
  if (is_shared || (reader == anchor && readers.size() != 1))
    return "it has several readers and is computed once";
  return nullptr;
}

}  // namespace ashlar
