// Matches the pointwise operations between q k^T and the softmax.
#include "plan/score_match.hpp"

#include <limits>
#include <map>
#include <set>

#include "graph/pointwise_traits.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Positions are computed in f32 where the graph may use integers; both are exact up to this.
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 24;
constexpr int kMostDepth = static_cast<int>(kMaxScoreSteps) + 16;  // plus masks and biases

bool is_pointwise(const Node* node) { return node && std::holds_alternative<Pointwise>(node->op); }

class ScoreMatcher {
 public:
  ScoreMatcher(const GraphEditor& editor, ScoreMatch& match) : editor_(editor), match_(match) {}

  bool run(TensorId scores, int readers) {
    dims_ = editor_.tensor(scores).dims;
    if (!find_matmul(scores, 0) || product_ == kNoTensor) return false;
    for (;; readers = 1) {
      if (editor_.uses(scores) != readers) return false;
      if (!peel_mask(scores) && !peel_bias(scores)) break;
    }
    find_base();
    match_.nodes.insert(match_.nodes.end(), base_nodes_.begin(), base_nodes_.end());
    return scores == base_ || match_program(scores);
  }

 private:
  // Finds the single matmul that reaches the softmax through pointwise operations. A bias may come
  // from a matmul too, with other extents or through other operations.
  bool find_matmul(TensorId id, int depth) {
    const Node* node = editor_.producer(id);
    if (!node || editor_.tensor(id).dims.rank() != dims_.rank()) return true;
    if (!visited_.insert(id).second) return true;
    if (std::holds_alternative<Matmul>(node->op) && editor_.tensor(id).dims == dims_) {
      if (product_ != kNoTensor && product_ != id) return false;
      product_ = id;
      match_.product = node;
    }
    if (!is_pointwise(node) || depth > kMostDepth) return true;
    for (TensorId input : node->inputs)
      if (input != kNoTensor && !find_matmul(input, depth + 1)) return false;
    return true;
  }
  bool leads_to_matmul(TensorId id) const { return leads(id, false); }
  // Whether `id` depends on the matmul (or on an index) through pointwise operations. Chains beyond
  // the depth limit count as dependent.
  bool leads(TensorId id, bool from_index, int depth = 0) const {
    if (id == product_ || depth > kMostDepth) return true;
    const Node* node = id == kNoTensor ? nullptr : editor_.producer(id);
    if (!is_pointwise(node)) return false;
    if (from_index && std::get<Pointwise>(node->op).mode == PointwiseMode::gen_index) return true;
    const auto key = std::pair(id, from_index);
    if (const auto known = leads_.find(key); known != leads_.end()) return known->second;
    bool result = false;
    for (TensorId input : node->inputs) result = result || leads(input, from_index, depth + 1);
    return leads_[key] = result;
  }

  // select(mask, x, -inf)
  bool peel_mask(TensorId& scores) {
    const Node* node = plain(editor_, scores, PointwiseMode::binary_select);
    if (!node || constant_value(editor_, node->inputs[Pointwise::b]) != -kInfinity) return false;
    const int rank = dims_.rank();
    if (!analyse_mask(editor_, node->inputs[Pointwise::predicate], rank - 2, rank - 1, match_.mask))
      return false;
    peel(scores, node->inputs[Pointwise::x]);
    return true;
  }
  // x + bias
  bool peel_bias(TensorId& scores) {
    const Node* node = plain(editor_, scores, PointwiseMode::add);
    if (!node || match_.bias != kNoTensor) return false;
    const auto operands = split_operands(*node, [&](TensorId t) {
      return !leads(t, true) && editor_.tensor(t).dims.rank() == 4 &&
             is_floating(editor_.tensor(t).dtype);
    });
    if (!operands || !leads_to_matmul(operands->second)) return false;
    match_.bias = operands->first;
    peel(scores, operands->second);
    return true;
  }
  void peel(TensorId& scores, TensorId inner) {
    match_.nodes.push_back(editor_.producer_id(scores));
    scores = inner;
  }

  // The only reader of `id`, or null.
  const Node* only_reader(TensorId id) const {
    if (editor_.uses(id) != 1 || editor_.consumers(id).size() != 1) return nullptr;
    const Node& node = editor_.node(editor_.consumers(id)[0]);
    return is_pointwise(&node) && is_plain(node) ? &node : nullptr;
  }

  // Extends the base from the matmul to the scaled and soft-capped scores while each value has one
  // reader.
  void find_base() {
    base_ = product_;
    base_nodes_ = {editor_.producer_id(product_)};
    const Node* reader = only_reader(base_);
    if (reader && match_scale(*reader)) {
      base_ = reader->outputs[0];
      base_nodes_.push_back(editor_.producer_id(base_));
    }
    match_soft_cap();
  }
  bool match_scale(const Node& node) {
    const PointwiseMode mode = std::get<Pointwise>(node.op).mode;
    if (mode == PointwiseMode::div && node.inputs[0] == base_) {
      const auto value = constant_value(editor_, node.inputs[1]);
      if (value && *value != 0) match_.constant_scale = 1 / *value;
      return value && *value != 0;
    }
    if (mode != PointwiseMode::mul) return false;
    const TensorId factor = node.inputs[0] == base_ ? node.inputs[1] : node.inputs[0];
    if (const auto value = constant_value(editor_, factor)) {
      match_.constant_scale = *value;
      return true;
    }
    const Tensor& tensor = editor_.tensor(factor);
    if (editor_.producer(factor) || element_count(tensor.dims) != 1 || !is_floating(tensor.dtype))
      return false;
    match_.scale = factor;
    return true;
  }
  // cap * tanh(x / cap)
  void match_soft_cap() {
    const Node* ratio = only_reader(base_);
    if (!ratio || std::get<Pointwise>(ratio->op).mode != PointwiseMode::div ||
        ratio->inputs[0] != base_)
      return;
    const auto cap = constant_value(editor_, ratio->inputs[1]);
    if (!cap || !(*cap > 0.0) || *cap == kInfinity) return;
    const Node* curve = only_reader(ratio->outputs[0]);
    if (!curve || std::get<Pointwise>(curve->op).mode != PointwiseMode::tanh_fwd) return;
    const Node* result = only_reader(curve->outputs[0]);
    if (!result || std::get<Pointwise>(result->op).mode != PointwiseMode::mul) return;
    const TensorId factor = result->inputs[result->inputs[0] == curve->outputs[0] ? 1 : 0];
    if (constant_value(editor_, factor) != cap) return;
    match_.soft_cap = cap;
    base_ = result->outputs[0];
    for (const Node* node : {ratio, curve, result})
      base_nodes_.push_back(editor_.producer_id(node->outputs[0]));
  }
  // --- everything else, as a program

  bool match_program(TensorId scores) {
    if (dims_.rank() != 4) return false;
    for (std::int64_t extent : dims_)
      if (extent >= kMaxPositions) return false;
    uses_[scores] = editor_.uses(scores);
    if (!emit(scores) || match_.modifier.empty()) return false;
    // Removed values must have no reader outside the program.
    for (const auto& [tensor, count] : uses_)
      if (editor_.uses(tensor) != count) return false;
    return true;
  }

  // The value number of `id` in the program, or nullopt.
  std::optional<std::int64_t> emit(TensorId id, int depth = 0) {
    if (depth > static_cast<int>(kMaxScoreSteps)) return std::nullopt;
    if (const auto known = values_.find(id); known != values_.end()) return known->second;
    std::optional<std::int64_t> value;
    if (id == base_)
      value = 0;
    else if (const auto constant = constant_value(editor_, id))
      value = add_step({.op = {}, .args = {}, .constant = *constant});
    else if (leads(id, true))
      value = emit_operation(id, depth);
    else
      value = emit_input(id);
    if (value) values_[id] = *value;
    return value;
  }
  std::optional<std::int64_t> emit_operation(TensorId id, int depth) {
    const Node* node = editor_.producer(id);
    if (!is_pointwise(node)) return std::nullopt;
    const auto& op = std::get<Pointwise>(node->op);
    if (op.mode == PointwiseMode::gen_index) {
      constexpr std::int64_t kPositions[] = {3, 4, 1, 2};  // batch, head, query, key
      const int axis = static_cast<int>(op.axis);
      if (editor_.tensor(id).dims[axis] != dims_[axis]) return std::nullopt;
      return kPositions[axis];
    }
    if (!may_become_step(*node)) return std::nullopt;
    const bool of_scores = leads_to_matmul(id);
    Dims args;
    for (int slot = 0; slot < operand_count(op.mode); ++slot) {
      const TensorId input = node->inputs[static_cast<std::size_t>(slot)];
      const auto value = emit(input, depth + 1);
      if (!value) return std::nullopt;
      args.push_back(*value);
      if (of_scores && leads_to_matmul(input)) ++uses_[input];
    }
    if (of_scores) match_.nodes.push_back(editor_.producer_id(id));
    return add_step({.op = op, .args = args, .constant = {}});
  }
  // Programs compute in floating point: integer arithmetic is accepted only where that is exact.
  bool may_become_step(const Node& node) const {
    const Tensor& result = editor_.tensor(node.outputs[0]);
    const PointwiseMode mode = std::get<Pointwise>(node.op).mode;
    if (result.dtype == boolean) return gives_boolean(mode);
    bool any_floating = false;
    for (TensorId input : node.inputs)
      if (input != kNoTensor && is_floating(editor_.tensor(input).dtype)) any_floating = true;
    const bool whole = !is_floating(result.dtype) || !is_floating(node.compute);
    if (!whole) return may_vanish(editor_, node.outputs[0]);
    if (any_floating || is_floating(result.dtype)) return false;
    switch (mode) {
      case PointwiseMode::add:
      case PointwiseMode::sub:
      case PointwiseMode::min:
      case PointwiseMode::max:
      case PointwiseMode::neg:
      case PointwiseMode::abs:
      case PointwiseMode::identity: return is_plain(node) && bit_width(result.dtype) >= 32;
      default: return false;
    }
  }
  std::optional<std::int64_t> emit_input(TensorId id) {
    const Tensor& tensor = editor_.tensor(id);
    if (tensor.dims.rank() != 4 || is_complex(tensor.dtype)) return std::nullopt;
    for (int axis = 0; axis < 4; ++axis)
      if (tensor.dims[axis] != 1 && tensor.dims[axis] != dims_[axis]) return std::nullopt;
    for (std::size_t n = 0; n < match_.modifier_inputs.size(); ++n)
      if (match_.modifier_inputs[n] == kNoTensor) {
        match_.modifier_inputs[n] = id;
        return kFirstScoreInput + static_cast<std::int64_t>(n);
      }
    return std::nullopt;
  }
  std::optional<std::int64_t> add_step(ScoreStep step) {
    if (match_.modifier.size() == kMaxScoreSteps) return std::nullopt;
    match_.modifier.push_back(std::move(step));
    return kFirstScoreStep + static_cast<std::int64_t>(match_.modifier.size()) - 1;
  }

  const GraphEditor& editor_;
  ScoreMatch& match_;
  Dims dims_;
  TensorId product_ = kNoTensor, base_ = kNoTensor;
  std::vector<NodeId> base_nodes_;
  std::set<TensorId> visited_;
  mutable std::map<std::pair<TensorId, bool>, bool> leads_;
  std::map<TensorId, std::int64_t> values_;
  std::map<TensorId, int> uses_;  // reads inside the program of values that depend on the matmul
};

}  // namespace

bool match_scores(const GraphEditor& editor, TensorId scores, int readers, ScoreMatch& match) {
  return ScoreMatcher(editor, match).run(scores, readers);
}

}  // namespace ashlar
