#include <algorithm>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

NormMode mode_of(std::int64_t mode) {
  switch (mode) {
    case CUDNN_LAYER_NORM: return NormMode::layer;
    case CUDNN_INSTANCE_NORM: return NormMode::instance;
    case CUDNN_BATCH_NORM: return NormMode::batch;
    case CUDNN_GROUP_NORM: return NormMode::group;
    case CUDNN_RMS_NORM: return NormMode::rms;
    case CUDNN_ADA_LAYER_NORM: return NormMode::ada_layer;
    default: fail(CUDNN_STATUS_BAD_PARAM, "norm mode: got {}, expected 0 to 5", mode);
  }
}

bool is_by_axes(NormMode mode) {
  return mode == NormMode::layer || mode == NormMode::rms || mode == NormMode::ada_layer;
}

DType compute_for(const Translation& translation, TensorId x) {
  return translation.tensor(x).dtype == f64 ? f64 : f32;
}

// The reduced axes: those on which the statistics have extent 1; without statistics, those on which
// the scale has an extent.
Dims axes_of(NormMode mode, const Dims& x, const Dims* statistics, const Dims* scale) {
  Dims axes;
  if (!is_by_axes(mode)) return axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (statistics != nullptr && statistics->rank() == x.rank()
            ? (*statistics)[axis] == 1 && x[axis] != 1
            : scale != nullptr && scale->rank() == x.rank() && (*scale)[axis] != 1 &&
                  !(mode == NormMode::ada_layer && axis == 0))
      axes.push_back(axis);
  }
  // When every extent is 1 the axes are ambiguous: all axes after the first.
  if (axes.empty())
    for (int axis = x.rank() > 1 ? 1 : 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

std::int64_t groups_of(NormMode mode, const Dims* statistics) {
  return mode == NormMode::group && statistics != nullptr && statistics->rank() > 1
             ? (*statistics)[1]
             : 1;
}

// The dims of scale and bias that the norm operation expects.
Dims parameter_dims(NormMode mode, const Dims& x, const Dims& axes) {
  Dims dims = Dims::filled(x.rank(), 1);
  if (!is_by_axes(mode)) {
    dims[1] = x[1];
    return dims;
  }
  for (std::int64_t axis : axes) dims[static_cast<int>(axis)] = x[static_cast<int>(axis)];
  if (mode == NormMode::ada_layer) dims[0] = x[0];
  return dims;
}

std::optional<TensorFacts> facts_or_none(const Translation& translation, const Record& operation,
                                         cudnnBackendAttributeName_t attribute) {
  if (operation.record_or_null(attribute) == nullptr) return std::nullopt;
  return translation.facts(operation, attribute);
}

const Dims* dims_or_null(const std::optional<TensorFacts>& facts) {
  return facts && !facts->has_inferred_dims ? &facts->dims : nullptr;
}

}  // namespace

namespace forward {

constexpr auto kX = CUDNN_ATTR_OPERATION_NORM_FWD_XDESC,
               kMean = CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC,
               kInvVariance = CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
               kScale = CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC,
               kBias = CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC,
               kEpsilon = CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
               kMomentum = CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
               kRunningMean = CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
               kRunningVar = CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
               kNextMean = CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
               kNextVar = CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
               kY = CUDNN_ATTR_OPERATION_NORM_FWD_YDESC;

// Inference: y = (x - mean) * inv_variance * scale + bias, with mean and inv_variance as inputs.
void translate_norm_inference(Translation& translation, const Record& operation, TensorId x) {
  const DType compute = compute_for(translation, x);
  const auto combined = [&](PointwiseMode mode, TensorId a, TensorId b) {
    return b == kNoTensor ? a : translation.pointwise(mode, {a, b}, compute, compute);
  };
  const auto operand = [&](auto attribute) {
    return translation.operand_or_none(operation, attribute);
  };
  TensorId y = combined(PointwiseMode::sub, x, operand(kMean));
  y = combined(PointwiseMode::mul, y, operand(kInvVariance));
  y = combined(PointwiseMode::mul, y, operand(kScale));
  translation.store(operation, kY, combined(PointwiseMode::add, y, operand(kBias)));
}

}  // namespace forward

void translate_norm_forward(Translation& translation, const Record& operation) {
  using namespace forward;
  using Op = NormForward;
  Op op;
  op.mode = mode_of(operation.integer(CUDNN_ATTR_OPERATION_NORM_FWD_MODE));
  const bool is_training =
      operation.integer(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
  op.phase = is_training ? NormPhase::training : NormPhase::inference;
  const TensorId x = translation.operand(operation, kX);
  if (!is_training && op.mode != NormMode::batch && operation.has(kInvVariance))
    return translate_norm_inference(translation, operation, x);

  const auto statistics = facts_or_none(translation, operation, kInvVariance),
             scale = facts_or_none(translation, operation, kScale);
  const Dims x_dims = translation.dims(x);
  op.axes = axes_of(op.mode, x_dims, is_training ? dims_or_null(statistics) : nullptr,
                    dims_or_null(scale));
  op.groups = groups_of(op.mode, dims_or_null(statistics));
  const DType compute = compute_for(translation, x);
  const TensorId scale_in = translation.operand_or_none(operation, kScale),
                 bias_in = translation.operand_or_none(operation, kBias);
  // Scale and bias that broadcast along a normalised axis are applied by separate pointwise nodes.
  const Dims parameters = parameter_dims(op.mode, x_dims, op.axes);
  const auto fits = [&](TensorId id) {
    return id == kNoTensor || translation.dims(id) == parameters;
  };
  const bool is_separate = !fits(scale_in) || !fits(bias_in);

  std::vector<TensorId> inputs(Op::momentum_tensor + 1, kNoTensor);
  inputs[Op::x] = x;
  if (!is_separate) {
    inputs[Op::scale] = scale_in;
    inputs[Op::bias] = bias_in;
  }
  const bool is_given = op.mode == NormMode::batch && !is_training;
  if (is_given && operation.has(kMean)) {
    inputs[Op::mean] = translation.operand(operation, kMean);
    inputs[Op::inv_variance] = translation.operand(operation, kInvVariance);
  } else {
    inputs[Op::epsilon_tensor] = translation.operand_or_none(operation, kEpsilon);
    if (op.mode == NormMode::batch) {
      inputs[Op::running_mean] = translation.operand_or_none(operation, kRunningMean);
      inputs[Op::running_var] = translation.operand_or_none(operation, kRunningVar);
      inputs[Op::momentum_tensor] = translation.operand_or_none(operation, kMomentum);
    }
  }
  std::vector<TensorId> outputs(Op::next_running_var + 1, kNoTensor);
  if (is_training) {
    if (op.mode != NormMode::rms)
      outputs[Op::out_mean] = translation.result_or_none(operation, kMean);
    outputs[Op::out_inv_variance] = translation.result_or_none(operation, kInvVariance);
    outputs[Op::next_running_mean] = translation.result_or_none(operation, kNextMean);
    outputs[Op::next_running_var] = translation.result_or_none(operation, kNextVar);
  }
  if (!is_separate) {
    outputs[Op::y] = translation.result(operation, kY);
    translation.add(op, inputs, outputs, compute);
    return;
  }
  outputs[Op::y] = translation.open_value(compute);
  TensorId y = translation.add(op, inputs, outputs, compute);
  if (scale_in != kNoTensor)
    y = translation.pointwise(PointwiseMode::mul, {y, scale_in}, compute, compute);
  if (bias_in != kNoTensor)
    y = translation.pointwise(PointwiseMode::add, {y, bias_in}, compute, compute);
  translation.store(operation, kY, y);
}

namespace backward {

constexpr auto kX = CUDNN_ATTR_OPERATION_NORM_BWD_XDESC,
               kMean = CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC,
               kInvVariance = CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC,
               kScale = CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC,
               kEpsilon = CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC,
               kDy = CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
               kDscale = CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
               kDbias = CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC,
               kDx = CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC;

// The gradient of a broadcast parameter: reduced over the axes that it lacks.
void store_summed(Translation& translation, const Record& operation,
                  cudnnBackendAttributeName_t attribute, TensorId gradient) {
  if (operation.record_or_null(attribute) == nullptr) return;
  const DType dtype = translation.tensor(gradient).dtype;
  translation.add(Reduction{ReductionMode::add, {}}, {gradient},
                  {translation.result(operation, attribute)}, dtype);
}

}  // namespace backward

void translate_norm_backward(Translation& translation, const Record& operation) {
  using namespace backward;
  using Op = NormBackward;
  Op op;
  op.mode = mode_of(operation.integer(CUDNN_ATTR_OPERATION_NORM_BWD_MODE));
  const TensorId x = translation.operand(operation, kX);
  const auto statistics = facts_or_none(translation, operation, kInvVariance),
             scale = facts_or_none(translation, operation, kScale);
  const Dims x_dims = translation.dims(x);
  op.axes = axes_of(op.mode, x_dims, dims_or_null(statistics), dims_or_null(scale));
  op.groups = groups_of(op.mode, dims_or_null(statistics));
  const DType compute = compute_for(translation, x);

  std::vector<TensorId> inputs(Op::epsilon_tensor + 1, kNoTensor);
  inputs[Op::x] = x;
  inputs[Op::dy] = translation.operand(operation, kDy);
  if (op.mode != NormMode::rms) inputs[Op::mean] = translation.operand_or_none(operation, kMean);
  inputs[Op::inv_variance] = translation.operand_or_none(operation, kInvVariance);
  inputs[Op::epsilon_tensor] = translation.operand_or_none(operation, kEpsilon);
  const TensorId scale_in = translation.operand_or_none(operation, kScale);
  const Dims parameters = parameter_dims(op.mode, x_dims, op.axes);
  if (scale_in == kNoTensor || translation.dims(scale_in) == parameters) {
    inputs[Op::scale] = scale_in;
    const TensorId dx = translation.result(operation, kDx);
    const TensorId dscale = translation.result_or_none(operation, kDscale);
    const TensorId dbias = translation.result_or_none(operation, kDbias);
    translation.add(op, inputs, {dx, dscale, dbias}, compute);
    return;
  }
  // A broadcast scale is expanded to the parameter dims of the norm, and its gradient is reduced
  // back.
  inputs[Op::scale] = translation.expanded(scale_in, parameters);
  const TensorId dscale = translation.open_value(compute), dbias = translation.open_value(compute);
  translation.add(op, inputs, {translation.result(operation, kDx), dscale, dbias}, compute);
  store_summed(translation, operation, kDscale, dscale);
  store_summed(translation, operation, kDbias, dbias);
}

}  // namespace ashlar::cudnn
