// Raises max, sub, exp, add, div to softmax_forward, and log(sum) + max to its stats.
#include <fmt/format.h>

#include "plan/lowered.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

struct SoftmaxMatch {
  TensorId x, max, difference, exponential, sum;
  std::int64_t axis;
};

std::optional<SoftmaxMatch> match_softmax(const GraphEditor& editor, const Node& division) {
  SoftmaxMatch m{};
  m.exponential = division.inputs[0];
  m.sum = division.inputs[1];
  const Node* exponential = plain(editor, m.exponential, PointwiseMode::exp);
  const auto sum = match_reduction(editor, m.sum, ReductionMode::add);
  if (!exponential || !sum || sum->source != m.exponential || sum->axes.rank() != 1)
    return std::nullopt;
  m.axis = sum->axes[0];
  m.difference = exponential->inputs[0];
  const Node* difference = plain(editor, m.difference, PointwiseMode::sub);
  if (!difference) return std::nullopt;
  m.x = difference->inputs[0];
  m.max = difference->inputs[1];
  const auto max = match_reduction(editor, m.max, ReductionMode::max);
  if (!max || max->source != m.x || max->axes != sum->axes) return std::nullopt;
  if (!is_floating(editor.tensor(m.x).dtype)) return std::nullopt;
  // The numerator and the difference must have no other reader: they are removed.
  if (editor.uses(m.difference) != 1 || editor.uses(m.exponential) != 2) return std::nullopt;
  for (TensorId inner : {m.max, m.difference, m.exponential, m.sum})
    if (!may_vanish(editor, inner)) return std::nullopt;
  return m;
}

// The node that computes max + log(sum), if any.
NodeId find_softmax_stats(const GraphEditor& editor, const SoftmaxMatch& m) {
  for (NodeId log_id : editor.consumers(m.sum)) {
    const Node& log = editor.node(log_id);
    if (!std::holds_alternative<Pointwise>(log.op) ||
        !plain(editor, log.outputs[0], PointwiseMode::log))
      continue;
    if (editor.uses(log.outputs[0]) != 1 || !may_vanish(editor, log.outputs[0])) continue;
    for (NodeId add_id : editor.consumers(log.outputs[0])) {
      const Node& add = editor.node(add_id);
      if (!std::holds_alternative<Pointwise>(add.op) ||
          !plain(editor, add.outputs[0], PointwiseMode::add))
        continue;
      if (add.inputs[0] == m.max || add.inputs[1] == m.max) return add_id;
    }
  }
  return kNoNode;
}

}  // namespace

void raise_softmax(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  for (NodeId id = 0; id < count; ++id) {
    const Node division = editor.node(id);
    if (!std::holds_alternative<Pointwise>(division.op) ||
        !plain(editor, division.outputs[0], PointwiseMode::div))
      continue;
    const auto m = match_softmax(editor, division);
    if (!m) continue;
    const NodeId stats_id = find_softmax_stats(editor, *m);
    const TensorId stats = stats_id == kNoNode ? kNoTensor : editor.node(stats_id).outputs[0];
    // max and sum must have no reader outside the pattern.
    const int extra = stats == kNoTensor ? 0 : 1;
    if (editor.uses(m->max) != 1 + extra || editor.uses(m->sum) != 1 + extra) continue;

    if (stats != kNoTensor) {
      const NodeId log_id = editor.producer_id(editor.node(stats_id).inputs[0] == m->max
                                                   ? editor.node(stats_id).inputs[1]
                                                   : editor.node(stats_id).inputs[0]);
      editor.remove(stats_id);
      editor.remove(log_id);
    }
    editor.remove(id);
    for (TensorId inner : {m->sum, m->exponential, m->difference, m->max})
      editor.remove(editor.producer_id(inner));
    SoftmaxForward softmax;
    softmax.axis = m->axis;
    editor.add({division.name + "_softmax",
                softmax,
                {m->x},
                {division.outputs[0], stats},
                division.compute});
    lowered.notes.push_back(fmt::format(
        "raised max, sub, exp, add, div ending in '{}' to softmax_forward", division.name));
  }
  editor.finish();
}

}  // namespace ashlar
