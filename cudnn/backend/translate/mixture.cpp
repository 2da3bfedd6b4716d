#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

MoeMode mode_of(std::int64_t mode) {
  switch (mode) {
    case CUDNN_MOE_GROUPED_MATMUL_MODE_NONE: return MoeMode::none;
    case CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER: return MoeMode::gather;
    case CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER: return MoeMode::scatter;
    default:
      fail(CUDNN_STATUS_BAD_PARAM,
           "CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE: got {}, expected 0 to 2", mode);
  }
}

}  // namespace

void translate_moe(Translation& translation, const Record& operation) {
  MoeGroupedMatmul op;
  op.mode = mode_of(operation.integer(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE));
  op.top_k = operation.integer_or(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K, 1);
  std::vector<TensorId> inputs;
  for (const auto attribute : {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC,
                               CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC,
                               CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC})
    inputs.push_back(translation.operand(operation, attribute));
  // Clients may set routing tensors that the mode does not use.
  inputs.push_back(op.mode == MoeMode::none
                       ? kNoTensor
                       : translation.operand(
                             operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC));
  inputs.push_back(
      op.mode != MoeMode::scatter
          ? kNoTensor
          : translation.operand(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC));
  const auto requested = static_cast<cudnnDataType_t>(
      operation.integer_or(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC, CUDNN_DATA_FLOAT));
  const DType compute = compute_of(translation, requested, inputs);
  translation.add(
      op, inputs,
      {translation.result(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC)},
      compute);
}

}  // namespace ashlar::cudnn
