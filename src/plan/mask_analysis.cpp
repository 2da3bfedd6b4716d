// Recognition of attention masks as linear inequalities over row and column indices.
#include "plan/mask_analysis.hpp"

#include <map>

#include "graph/pointwise_traits.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

// row * row_index + col * col_index + constant + sum of coefficients * tensors.
struct LinearForm {
  double row = 0, col = 0, constant = 0;
  std::map<TensorId, double> lengths;

  LinearForm& add(const LinearForm& other, double factor) {
    row += factor * other.row;
    col += factor * other.col;
    constant += factor * other.constant;
    for (const auto& [tensor, coefficient] : other.lengths) {
      lengths[tensor] += factor * coefficient;
      if (lengths[tensor] == 0) lengths.erase(tensor);
    }
    return *this;
  }
};

class MaskAnalysis {
 public:
  MaskAnalysis(const GraphEditor& editor, int row_axis, int col_axis, MaskBounds& bounds)
      : editor_(editor), row_axis_(row_axis), col_axis_(col_axis), bounds_(bounds) {}

  bool conjunction(TensorId id) {
    const Node* node = editor_.produced_by<Pointwise>(id);
    if (!node || !is_plain(*node)) return false;
    switch (std::get<Pointwise>(node->op).mode) {
      case PointwiseMode::logical_and:
        return conjunction(node->inputs[0]) && conjunction(node->inputs[1]);
      case PointwiseMode::identity: return conjunction(node->inputs[0]);
      // a >= b: a - b >= 0; over integers a > b is a - b - 1 >= 0.
      case PointwiseMode::cmp_ge: return comparison(*node, 0, 1, 0);
      case PointwiseMode::cmp_gt: return comparison(*node, 0, 1, -1);
      case PointwiseMode::cmp_le: return comparison(*node, 1, 0, 0);
      case PointwiseMode::cmp_lt: return comparison(*node, 1, 0, -1);
      default: return false;
    }
  }

 private:
  std::optional<LinearForm> linear(TensorId id) const {
    LinearForm form;
    if (const auto value = constant_value(editor_, id)) {
      form.constant = *value;
      return form;
    }
    const Node* node = editor_.produced_by<Pointwise>(id);
    if (!node) {
      // A tensor of sequence lengths, one per batch.
      const Tensor& tensor = editor_.tensor(id);
      if (editor_.producer(id) || !is_integer(tensor.dtype) || tensor.dims.rank() <= row_axis_ ||
          element_count(tensor.dims) != tensor.dims[0])
        return std::nullopt;
      form.lengths[id] = 1;
      return form;
    }
    if (!is_plain(*node)) return std::nullopt;
    const auto& op = std::get<Pointwise>(node->op);
    switch (op.mode) {
      case PointwiseMode::gen_index:
        if (op.axis != row_axis_ && op.axis != col_axis_) return std::nullopt;
        // A broadcast index would be 0 everywhere.
        if (editor_.tensor(id).dims[static_cast<int>(op.axis)] == 1) return std::nullopt;
        (op.axis == row_axis_ ? form.row : form.col) = 1;
        return form;
      case PointwiseMode::identity: return linear(node->inputs[0]);
      case PointwiseMode::add:
      case PointwiseMode::sub: {
        const auto a = linear(node->inputs[0]), b = linear(node->inputs[1]);
        if (!a || !b) return std::nullopt;
        form = *a;
        return form.add(*b, op.mode == PointwiseMode::add ? 1 : -1);
      }
      default: return std::nullopt;
    }
  }

  // Visible where left - right + shift >= 0.
  bool comparison(const Node& node, int left, int right, double shift) {
    const auto a = linear(node.inputs[static_cast<std::size_t>(left)]);
    const auto b = linear(node.inputs[static_cast<std::size_t>(right)]);
    if (!a || !b) return false;
    LinearForm form = *a;
    form.add(*b, -1);
    form.constant += shift;
    if (form.constant != std::floor(form.constant) || std::fabs(form.constant) > 1e15) return false;
    const auto constant = static_cast<std::int64_t>(form.constant);
    if (form.row == 1 && form.col == -1) return diagonal(form, 1, bounds_.right_bound, constant);
    if (form.row == -1 && form.col == 1)
      return diagonal(form, -1, bounds_.left_bound, constant + 1);
    if (form.row == -1 && form.col == 0) return length(form, constant, bounds_.seq_len_q);
    if (form.row == 0 && form.col == -1) return length(form, constant, bounds_.seq_len_kv);
    return false;
  }

  // row - col + c >= 0 is right_bound = c; col - row + c - 1 >= 0 is left_bound = c.
  bool diagonal(const LinearForm& form, double sign, std::optional<std::int64_t>& bound,
                std::int64_t value) {
    if (!form.lengths.empty()) {
      // sign * (kv_length - q_length): the diagonal ends in the bottom right corner.
      if (form.lengths.size() != 2) return false;
      TensorId kv = kNoTensor, q = kNoTensor;
      for (const auto& [tensor, coefficient] : form.lengths)
        (coefficient == sign ? kv : q) = tensor;
      if (kv == kNoTensor || q == kNoTensor || form.lengths.at(q) != -sign) return false;
      if (!agree(bounds_.seq_len_kv, kv) || !agree(bounds_.seq_len_q, q)) return false;
    }
    const bool bottom_right = !form.lengths.empty();
    if ((bounds_.left_bound || bounds_.right_bound) && bounds_.bottom_right != bottom_right)
      return false;
    bounds_.bottom_right = bottom_right;
    bound = bound ? std::min(*bound, value) : value;
    return true;
  }

  // length - index - 1 >= 0.
  bool length(const LinearForm& form, std::int64_t constant, TensorId& slot) {
    if (constant != -1 || form.lengths.size() != 1 || form.lengths.begin()->second != 1)
      return false;
    return agree(slot, form.lengths.begin()->first);
  }

  static bool agree(TensorId& slot, TensorId tensor) {
    if (slot != kNoTensor && slot != tensor) return false;
    slot = tensor;
    return true;
  }

  const GraphEditor& editor_;
  int row_axis_, col_axis_;
  MaskBounds& bounds_;
};

}  // namespace

bool analyse_mask(const GraphEditor& editor, TensorId predicate, int row_axis, int col_axis,
                  MaskBounds& bounds) {
  MaskBounds updated = bounds;
  if (!MaskAnalysis(editor, row_axis, col_axis, updated).conjunction(predicate)) return false;
  bounds = updated;
  return true;
}

}  // namespace ashlar
