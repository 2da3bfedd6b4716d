// Translation of the separate batch-norm operations (GEN_STATS, BN_FINALIZE, BN_BWD_WEIGHTS).
#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

DType math_of(const Translation& translation, const Record& operation,
              cudnnBackendAttributeName_t attribute, TensorId x) {
  const DType requested = compute_of(
      translation, static_cast<cudnnDataType_t>(operation.integer_or(attribute, CUDNN_DATA_FLOAT)),
      std::array{x});
  return is_floating(requested) ? requested : f32;
}

}  // namespace

void translate_gen_stats(Translation& translation, const Record& operation) {
  const TensorId x = translation.operand(operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
  const DType math = math_of(translation, operation, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, x);
  const Dims x_dims = translation.dims(x);
  Dims channels = Dims::filled(x_dims.rank(), 1);
  channels[1] = x_dims[1];
  const auto sums = [&](cudnnBackendAttributeName_t attribute) {
    const bool has_other_dims = translation.facts(operation, attribute).dims != channels;
    return translation.result(operation, attribute,
                              has_other_dims ? std::optional(channels) : std::nullopt);
  };
  const TensorId sum = sums(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
  const TensorId squares = sums(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
  translation.add(GenStats{}, {x}, {sum, squares}, math);
}

void translate_bn_finalize(Translation& translation, const Record& operation) {
  BnFinalize op;
  op.phase = operation.integer(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE) ==
                     CUDNN_BN_FINALIZE_STATISTICS_INFERENCE
                 ? NormPhase::inference
                 : NormPhase::training;
  std::vector<TensorId> inputs;
  for (const auto attribute :
       {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC})
    inputs.push_back(translation.operand_or_none(operation, attribute));
  std::vector<TensorId> outputs;
  for (const auto attribute : {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC,
                               CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC,
                               CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC,
                               CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
                               CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
                               CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC})
    outputs.push_back(translation.result_or_none(operation, attribute));
  const DType math = math_of(translation, operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC,
                             inputs[BnFinalize::scale]);
  translation.add(op, inputs, outputs, math);
}

void translate_bn_backward_weights(Translation& translation, const Record& operation) {
  std::vector<TensorId> inputs;
  for (const auto attribute :
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC,
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC,
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC})
    inputs.push_back(translation.operand(operation, attribute));
  std::vector<TensorId> outputs;
  for (const auto attribute : {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                               CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
                               CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
                               CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
                               CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS})
    outputs.push_back(translation.result_or_none(operation, attribute));
  const DType math =
      math_of(translation, operation, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, inputs[0]);
  translation.add(BnBackwardWeights{}, inputs, outputs, math);
}

}  // namespace ashlar::cudnn
