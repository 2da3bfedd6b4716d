#include <algorithm>
#include <limits>
#include <optional>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

constexpr auto kX = CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kB = CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               kY = CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
               kDy = CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
               kDx = CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
               kT = CUDNN_ATTR_OPERATION_POINTWISE_TDESC;

struct ModePair {
  cudnnPointwiseMode_t theirs;
  PointwiseMode ours;
};
using enum PointwiseMode;
constexpr std::array kModes = {
    ModePair{CUDNN_POINTWISE_ADD, add},
    ModePair{CUDNN_POINTWISE_MUL, mul},
    ModePair{CUDNN_POINTWISE_MIN, PointwiseMode::min},
    ModePair{CUDNN_POINTWISE_MAX, PointwiseMode::max},
    ModePair{CUDNN_POINTWISE_ADD_SQUARE, add_square},
    ModePair{CUDNN_POINTWISE_DIV, PointwiseMode::div},
    ModePair{CUDNN_POINTWISE_MOD, mod},
    ModePair{CUDNN_POINTWISE_POW, PointwiseMode::pow},
    ModePair{CUDNN_POINTWISE_SUB, sub},
    ModePair{CUDNN_POINTWISE_ATAN2, PointwiseMode::atan2},
    ModePair{CUDNN_POINTWISE_SQRT, PointwiseMode::sqrt},
    ModePair{CUDNN_POINTWISE_ABS, PointwiseMode::abs},
    ModePair{CUDNN_POINTWISE_CEIL, PointwiseMode::ceil},
    ModePair{CUDNN_POINTWISE_COS, PointwiseMode::cos},
    ModePair{CUDNN_POINTWISE_EXP, PointwiseMode::exp},
    ModePair{CUDNN_POINTWISE_FLOOR, PointwiseMode::floor},
    ModePair{CUDNN_POINTWISE_LOG, PointwiseMode::log},
    ModePair{CUDNN_POINTWISE_NEG, neg},
    ModePair{CUDNN_POINTWISE_RSQRT, PointwiseMode::rsqrt},
    ModePair{CUDNN_POINTWISE_SIN, PointwiseMode::sin},
    ModePair{CUDNN_POINTWISE_TAN, PointwiseMode::tan},
    ModePair{CUDNN_POINTWISE_ERF, PointwiseMode::erf},
    ModePair{CUDNN_POINTWISE_IDENTITY, identity},
    ModePair{CUDNN_POINTWISE_RECIPROCAL, reciprocal},
    ModePair{CUDNN_POINTWISE_RELU_FWD, relu_fwd},
    ModePair{CUDNN_POINTWISE_TANH_FWD, tanh_fwd},
    ModePair{CUDNN_POINTWISE_SIGMOID_FWD, sigmoid_fwd},
    ModePair{CUDNN_POINTWISE_ELU_FWD, elu_fwd},
    ModePair{CUDNN_POINTWISE_GELU_FWD, gelu_fwd},
    ModePair{CUDNN_POINTWISE_SOFTPLUS_FWD, softplus_fwd},
    ModePair{CUDNN_POINTWISE_SWISH_FWD, swish_fwd},
    ModePair{CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, gelu_approx_tanh_fwd},
    ModePair{CUDNN_POINTWISE_RELU_BWD, relu_bwd},
    ModePair{CUDNN_POINTWISE_TANH_BWD, tanh_bwd},
    ModePair{CUDNN_POINTWISE_SIGMOID_BWD, sigmoid_bwd},
    ModePair{CUDNN_POINTWISE_ELU_BWD, elu_bwd},
    ModePair{CUDNN_POINTWISE_GELU_BWD, gelu_bwd},
    ModePair{CUDNN_POINTWISE_SOFTPLUS_BWD, softplus_bwd},
    ModePair{CUDNN_POINTWISE_SWISH_BWD, swish_bwd},
    ModePair{CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, gelu_approx_tanh_bwd},
    ModePair{CUDNN_POINTWISE_CMP_EQ, cmp_eq},
    ModePair{CUDNN_POINTWISE_CMP_NEQ, cmp_neq},
    ModePair{CUDNN_POINTWISE_CMP_GT, cmp_gt},
    ModePair{CUDNN_POINTWISE_CMP_GE, cmp_ge},
    ModePair{CUDNN_POINTWISE_CMP_LT, cmp_lt},
    ModePair{CUDNN_POINTWISE_CMP_LE, cmp_le},
    ModePair{CUDNN_POINTWISE_LOGICAL_AND, logical_and},
    ModePair{CUDNN_POINTWISE_LOGICAL_OR, logical_or},
    ModePair{CUDNN_POINTWISE_LOGICAL_NOT, logical_not},
    ModePair{CUDNN_POINTWISE_GEN_INDEX, gen_index},
    ModePair{CUDNN_POINTWISE_BINARY_SELECT, binary_select},
};
// The modes after binary_select have no cudnnPointwiseMode_t.
static_assert(kModes.size() == static_cast<std::size_t>(binary_select) + 1);

bool is_gradient(PointwiseMode mode) { return mode >= relu_bwd && mode <= gelu_approx_tanh_bwd; }

int operand_count(PointwiseMode mode) {
  if (mode == binary_select) return 3;
  const bool is_unary = (mode >= PointwiseMode::sqrt && mode <= gelu_approx_tanh_fwd) ||
                        mode == logical_not || mode == gen_index;
  return is_unary ? 1 : 2;
}

Pointwise attributes_of(const Record& operation) {
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const std::int64_t mode = descriptor.integer(CUDNN_ATTR_POINTWISE_MODE);
  const auto found = std::find_if(kModes.begin(), kModes.end(),
                                  [&](const ModePair& pair) { return pair.theirs == mode; });
  if (found == kModes.end())
    fail(CUDNN_STATUS_BAD_PARAM,
         "CUDNN_ATTR_POINTWISE_MODE: got {}, expected a cudnnPointwiseMode_t", mode);
  Pointwise op;
  op.mode = found->ours;
  op.alpha1 = operation.number_or(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1.0);
  op.alpha2 = operation.number_or(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.0);
  op.relu_lower_clip = descriptor.number_or(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0);
  op.relu_upper_clip = descriptor.number_or(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
                                            std::numeric_limits<double>::infinity());
  // FLT_MAX means no upper clip.
  if (op.relu_upper_clip >= static_cast<double>(std::numeric_limits<float>::max()))
    op.relu_upper_clip = std::numeric_limits<double>::infinity();
  op.relu_lower_slope = descriptor.number_or(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0);
  op.elu_alpha = descriptor.number_or(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1.0);
  op.softplus_beta = descriptor.number_or(CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1.0);
  op.swish_beta = descriptor.number_or(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
  op.axis = descriptor.integer_or(CUDNN_ATTR_POINTWISE_AXIS, 0);
  return op;
}

DType math_of(const Translation& translation, const Record& operation,
              std::span<const TensorId> operands) {
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const auto requested = static_cast<cudnnDataType_t>(
      descriptor.integer_or(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT));
  return compute_of(translation, requested, operands);
}

// Pads all operands to one rank.
void match_ranks(Translation& translation, std::vector<TensorId>& operands) {
  int rank = 0;
  for (TensorId id : operands) rank = std::max(rank, translation.dims(id).rank());
  for (TensorId& id : operands) id = translation.with_rank(id, rank);
}

// The backward of an activation from its output y, without its input x.
void gradient_from_result(Translation& translation, const Record& operation, const Pointwise& op) {
  const TensorId y = translation.operand(operation, kY), dy = translation.operand(operation, kDy);
  const DType math = math_of(translation, operation, std::array{dy, y});
  const int rank = translation.dims(y).rank();
  const auto number = [&](double value) { return translation.constant(value, math, rank); };
  const auto combined = [&](PointwiseMode mode, TensorId a, TensorId b) {
    return translation.pointwise(mode, {a, b}, math, math);
  };
  TensorId slope = kNoTensor;
  switch (op.mode) {
    case relu_bwd: {  // y is clipped where x is
      std::vector<TensorId> operands = {dy, y};
      match_ranks(translation, operands);
      translation.add(op, operands, {translation.result(operation, kDx)}, math);
      return;
    }
    case tanh_bwd: slope = combined(sub, number(1), combined(mul, y, y)); break;
    case sigmoid_bwd: slope = combined(mul, y, combined(sub, number(1), y)); break;
    case softplus_bwd: {
      const TensorId power = combined(mul, y, number(-op.softplus_beta));
      slope =
          combined(sub, number(1), translation.pointwise(PointwiseMode::exp, {power}, math, math));
      break;
    }
    case elu_bwd: {
      const TensorId rises = translation.pointwise(cmp_gt, {y, number(0)}, boolean, math);
      slope = translation.pointwise(
          binary_select, {number(1), combined(add, y, number(op.elu_alpha)), rises}, math, math);
      break;
    }
    default:
      fail(CUDNN_STATUS_BAD_PARAM,
           "CUDNN_ATTR_OPERATION_POINTWISE_XDESC: not set, expected the input of the "
           "activation, which "
           "its output does not determine");
  }
  translation.add(Pointwise{.mode = mul, .alpha1 = op.alpha1, .alpha2 = op.alpha2}, {dy, slope},
                  {translation.result(operation, kDx)}, math);
}

// The scale of dropout, weights * mask * (1 / keep probability), when the mask is an RNG operation
// of this graph. It is passed by value at every execution, but follows from the probability.
std::optional<double> dropout_factor(const Translation& translation, const Record& operation) {
  const auto produced_by = [&](const Record& tensor, cudnnBackendDescriptorType_t type) {
    const Record* producer = translation.producer_of(uid_of(tensor));
    return producer != nullptr && producer->type == type ? producer : nullptr;
  };
  const Record* product =
      produced_by(operation.record(kX), CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  if (product == nullptr || attributes_of(*product).mode != mul) return std::nullopt;
  for (const auto attribute : {kX, kB})
    if (const Record* draw =
            produced_by(product->record(attribute), CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR)) {
      const double keep = draw->record(CUDNN_ATTR_OPERATION_RNG_DESC)
                              .number_or(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 0.0);
      if (keep > 0) return 1 / keep;
    }
  return std::nullopt;
}

// The second operand. Some pass-by-value operands are assumed constant.
TensorId second_operand(Translation& translation, const Record& operation, PointwiseMode mode) {
  if (mode == binary_select)  // the fill value of a mask
    return translation.assumed(operation, kB, -std::numeric_limits<double>::infinity());
  if (mode == mul && translation.facts(operation, kB).is_by_value)
    if (const auto factor = dropout_factor(translation, operation))
      return translation.assumed(operation, kB, *factor);
  return translation.operand(operation, kB);
}

}  // namespace

void translate_pointwise(Translation& translation, const Record& operation) {
  const Pointwise op = attributes_of(operation);
  if (is_gradient(op.mode)) {
    if (!operation.has(kX)) return gradient_from_result(translation, operation, op);
    std::vector<TensorId> operands = {translation.operand(operation, kDy),
                                      translation.operand(operation, kX)};
    match_ranks(translation, operands);
    const DType math = math_of(translation, operation, operands);
    translation.add(op, operands, {translation.result(operation, kDx)}, math);
    return;
  }
  std::vector<TensorId> operands = {translation.operand(operation, kX)};
  if (operand_count(op.mode) >= 2)
    operands.push_back(second_operand(translation, operation, op.mode));
  if (operand_count(op.mode) == 3) operands.push_back(translation.operand(operation, kT));
  match_ranks(translation, operands);
  const DType math = math_of(translation, operation, operands);
  translation.add(op, operands, {translation.result(operation, kY)}, math);
}

}  // namespace ashlar::cudnn
