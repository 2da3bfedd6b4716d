// Expands attention_forward into matmul, softmax, matmul: for devices whose attention engines
// refuse it. Scale, bias and mask become the epilogue of the first matmul. The scores pass through
// memory. The weights of hidden keys are 0 and are multiplied with their values.
#include <cmath>
#include <limits>

#include "plan/expand.hpp"

namespace ashlar {

namespace {

// Larger score matrices stay with an engine that does not store them.
constexpr std::int64_t kMaxScoreBytes = std::int64_t{4} << 30;

struct Shape {
  std::int64_t batch, heads, groups, rows, columns;  // heads: of keys and values
};

// An operand or result that may be absent.
TensorId input_or_none(const Expansion& e, int slot) {
  return slot < static_cast<int>(e.node().inputs.size()) ? e.input(slot) : kNoTensor;
}
TensorId output_or_none(const Expansion& e, int slot) {
  return slot < static_cast<int>(e.node().outputs.size()) ? e.output(slot) : kNoTensor;
}

// Whether the bounds hide all keys from some row: its result is 0, where a softmax divides by 0.
bool may_have_empty_rows(const AttentionAttributes& op, const Shape& shape) {
  const std::int64_t shift =
      op.alignment == MaskAlignment::bottom_right ? shape.columns - shape.rows : 0;
  if (op.right_bound && shift + *op.right_bound < 0) return true;
  return op.left_bound && shape.rows - 1 + shift - *op.left_bound + 1 > shape.columns - 1;
}

// Only plain operands, the bias and a scale in a tensor are expressed here.
bool has_other_operands(const Expansion& e) {
  for (int slot = 0; slot < static_cast<int>(e.node().inputs.size()); ++slot) {
    const bool is_expressed = slot == AttentionForward::q || slot == AttentionForward::k ||
                              slot == AttentionForward::v || slot == AttentionForward::bias ||
                              slot == AttentionForward::scale_tensor;
    if (e.input(slot) != kNoTensor && !is_expressed) return true;
  }
  for (int slot = 0; slot < static_cast<int>(e.node().outputs.size()); ++slot)
    if (e.output(slot) != kNoTensor && slot != AttentionForward::o &&
        slot != AttentionForward::stats)
      return true;
  return false;
}

class AttentionExpansion {
 public:
  AttentionExpansion(const AttentionForward& op, Expansion& e, const Shape& shape)
      : op_(op), e_(e), shape_(shape), rank_(shape.groups > 1 ? 5 : 4) {}

  void run() {
    const TensorId q = grouped(e_.input(AttentionForward::q), shape_.groups);
    const TensorId k = grouped(e_.input(AttentionForward::k), 1),
                   v = grouped(e_.input(AttentionForward::v), 1);
    const DType dtype = e_.tensor(e_.input(AttentionForward::q)).dtype;
    e_.begin();
    Dims swap;
    for (int axis = 0; axis < rank_; ++axis) swap.push_back(axis);
    std::swap(swap[rank_ - 1], swap[rank_ - 2]);
    TensorId scores = e_.matmul(q, e_.transpose(k, swap), "scores");
    scores = masked(biased(scaled(scores)));
    const TensorId weights =
        has_bias() ? weights_of_any_rows(scores, dtype) : weights_of_visible_rows(scores, dtype);
    if (rank_ == 4) return e_.make(Matmul{}, {weights, v}, AttentionForward::o);
    const DType result = e_.tensor(e_.output(AttentionForward::o)).dtype;
    e_.store(e_.add(Matmul{}, {weights, v}, {.role = "values", .dtype = result}),
             AttentionForward::o);
  }

 private:
  bool has_bias() const { return input_or_none(e_, AttentionForward::bias) != kNoTensor; }

  TensorId weights_of_visible_rows(TensorId scores, DType dtype) {
    std::vector<Expansion::Result> results = {{.role = "weights", .dtype = dtype}};
    const bool has_stats = output_or_none(e_, AttentionForward::stats) != kNoTensor;
    if (has_stats) results.push_back({.role = "stats"});
    const auto normalised = e_.add(SoftmaxForward{{.axis = rank_ - 1}}, {scores}, results);
    if (has_stats) e_.store(normalised[1], AttentionForward::stats);
    return normalised[0];
  }

  // A bias of -inf may hide all keys from a row. The softmax of such a row is NaN; its weights
  // are 0, as is every weight of a score of -inf.
  TensorId weights_of_any_rows(TensorId scores, DType dtype) {
    const TensorId zero = e_.constant(0.0, rank_, "zero"),
                   normalised =
                       e_.add(SoftmaxForward{{.axis = rank_ - 1}}, {scores}, {"normalised"}),
                   counts = e_.pointwise(PointwiseMode::cmp_neq, {scores, hidden()},
                                         {.role = "counts", .dtype = DType::boolean});
    return e_.pointwise(PointwiseMode::binary_select, {normalised, zero, counts},
                        {.role = "weights", .dtype = dtype});
  }

  TensorId hidden() {
    return e_.constant(-std::numeric_limits<double>::infinity(), rank_, "hidden");
  }

  // [B, H, rows, columns] with the heads that share a key on an axis of their own.
  TensorId grouped(TensorId x, std::int64_t groups) {
    if (rank_ == 4) return x;
    const Dims d = e_.dims(x);
    return e_.reshape(x, {d[0], d[1] / groups, groups, d[2], d[3]});
  }

  TensorId scaled(TensorId scores) {
    const TensorId given = input_or_none(e_, AttentionForward::scale_tensor);
    if (given != kNoTensor)
      return e_.pointwise(PointwiseMode::mul, {scores, e_.reshape(given, Dims::filled(rank_, 1))},
                          {"scaled"});
    const auto depth = static_cast<double>(e_.dims(e_.input(AttentionForward::q))[3]);
    const double scale = op_.scale.value_or(1.0 / std::sqrt(depth));
    if (scale == 1.0) return scores;
    return e_.pointwise(PointwiseMode::mul, {scores, e_.constant(scale, rank_, "scale")},
                        {"scaled"});
  }

  TensorId biased(TensorId scores) {
    if (!has_bias()) return scores;
    const TensorId bias = e_.input(AttentionForward::bias);
    const bool is_per_head = e_.dims(bias)[1] > 1;
    return e_.pointwise(PointwiseMode::add,
                        {scores, grouped(bias, is_per_head ? shape_.groups : 1)}, {"biased"});
  }

  TensorId index(TensorId scores, int axis, double offset, const std::string& role) {
    const TensorId position =
        e_.add(Pointwise{.mode = PointwiseMode::gen_index, .axis = axis}, {scores}, {role});
    if (offset == 0.0) return position;
    return e_.pointwise(PointwiseMode::add,
                        {position, e_.constant(offset, rank_, role + "_offset")}, {role + "_edge"});
  }

  TensorId masked(TensorId scores) {
    const auto shift = static_cast<double>(
        op_.alignment == MaskAlignment::bottom_right ? shape_.columns - shape_.rows : 0);
    const auto bound = [&](PointwiseMode mode, std::int64_t distance, const std::string& role) {
      const TensorId column = index(scores, rank_ - 1, 0.0, "column"),
                     edge = index(scores, rank_ - 2, shift + static_cast<double>(distance), role),
                     sees = e_.pointwise(mode, {edge, column},
                                         {.role = role + "_visible", .dtype = DType::boolean});
      scores =
          e_.pointwise(PointwiseMode::binary_select, {scores, hidden(), sees}, {role + "_masked"});
    };
    if (op_.right_bound) bound(PointwiseMode::cmp_ge, *op_.right_bound, "right");
    if (op_.left_bound) bound(PointwiseMode::cmp_lt, -*op_.left_bound, "left");
    return scores;
  }

  const AttentionForward& op_;
  Expansion& e_;
  const Shape shape_;
  const int rank_;
};

}  // namespace

bool expand_into_matmuls(const AttentionForward& op, Expansion& e) {
  const Dims q = e.dims(e.input(AttentionForward::q)), k = e.dims(e.input(AttentionForward::k)),
             v = e.dims(e.input(AttentionForward::v));
  const Shape shape{q[0], k[1], q[1] / k[1], q[2], k[2]};
  if (has_other_operands(e) || op.dropout > 0 || op.alibi || op.soft_cap ||
      !op.score_modifier.empty() || v[1] != k[1] || may_have_empty_rows(op, shape))
    return false;
  for (const int slot : {AttentionForward::q, AttentionForward::k, AttentionForward::v}) {
    const Tensor& operand = e.tensor(e.input(slot));
    if (operand.ragged_offset != kNoTensor || bit_width(operand.dtype) < 16) return false;
  }
  if (e.tensor(e.output(AttentionForward::o)).ragged_offset != kNoTensor) return false;
  // The softmax's statistics of a row that a bias of -inf hides are NaN.
  if (input_or_none(e, AttentionForward::bias) != kNoTensor &&
      output_or_none(e, AttentionForward::stats) != kNoTensor)
    return false;
  const std::int64_t scores = shape.batch * q[1] * shape.rows * shape.columns;
  if (scores == 0 || scores > kMaxScoreBytes / (bit_width(e.dtype()) / 8)) return false;
  AttentionExpansion(op, e, shape).run();
  return true;
}

}  // namespace ashlar
