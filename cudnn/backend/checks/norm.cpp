// Checks of normalisations and of the separate batch-norm operations.
#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

using Names = std::initializer_list<cudnnBackendAttributeName_t>;

// The dims of a per-channel tensor: C on axis 1, 1 on all others.
Extents channel_dims(const Operand& x) {
  Extents dims(x.dims().size(), 1);
  dims[1] = x.extent(1);
  return dims;
}

// Sums in memory may have any rank, with C on one axis and 1 on all others: [1, C, 1, 1], [C].
void check_channel_sums(const Operand& sums, const Operand& x) {
  sums.require_set();
  Extents extents(sums.dims().begin(), sums.dims().end());
  std::erase(extents, 1);
  const bool is_vector = extents == (x.extent(1) == 1 ? Extents{} : Extents{x.extent(1)});
  if (sums.is_virtual() || !is_vector) sums.require_dims(channel_dims(x), ", one per channel");
}

void require_both(const Operand& first, const Operand& second) {
  if (first.is_set() != second.is_set()) (first.is_set() ? second : first).require_set();
}

// Statistics of group norm have one element per group of channels; all others broadcast.
void check_statistics(const Record& operation, Names names, std::int64_t mode, const Operand& x) {
  for (const auto name : names) {
    const Operand statistic(operation, name);
    if (mode == CUDNN_GROUP_NORM)
      statistic.require_divisor(x.dims());
    else
      statistic.require_broadcastable(x.dims());
    statistic.require_floating();
  }
}

}  // namespace

FinishedRef finalize_norm_forward(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE});
  const std::int64_t mode = operation.integer(CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
  const Operand x(operation, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
  x.require_set().require_rank(2);
  Operand(operation, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC)
      .require_set()
      .require_dims(x.dims(), ", the dims of CUDNN_ATTR_OPERATION_NORM_FWD_XDESC");
  for (const auto name :
       {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC})
    Operand(operation, name).require_broadcastable(x.dims()).require_floating();
  check_statistics(
      operation,
      {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC},
      mode, x);
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC})
    Operand(operation, name).require_one_element().require_floating();
  require_both({operation, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC},
               {operation, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC});
  require_both({operation, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC},
               {operation, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC});
  return attributes_only();
}

FinishedRef finalize_norm_backward(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_NORM_BWD_MODE});
  const std::int64_t mode = operation.integer(CUDNN_ATTR_OPERATION_NORM_BWD_MODE);
  const Operand x(operation, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
  x.require_set().require_rank(2);
  for (const auto name :
       {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC})
    Operand(operation, name)
        .require_set()
        .require_dims(x.dims(), ", the dims of CUDNN_ATTR_OPERATION_NORM_BWD_XDESC");
  for (const auto name :
       {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
        CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC})
    Operand(operation, name).require_broadcastable(x.dims()).require_floating();
  check_statistics(
      operation,
      {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC},
      mode, x);
  Operand(operation, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC)
      .require_one_element()
      .require_floating();
  return attributes_only();
}

FinishedRef finalize_gen_stats(const Record& operation) {
  require_set(operation,
              {CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC});
  const Operand x(operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
  x.require_set().require_rank(2);
  for (const auto name :
       {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC})
    check_channel_sums({operation, name}, x);
  return attributes_only();
}

FinishedRef finalize_bn_finalize(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
                          CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC});
  const bool is_training = operation.integer(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE) ==
                           CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
  const Operand scale(operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC);
  scale.require_set().require_rank(2);
  Operand(operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC).require_set();
  const auto require_all = [&operation](Names names) {
    for (const auto name : names) Operand(operation, name).require_set();
  };
  if (is_training)
    require_all({CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC,
                 CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
                 CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC});
  else
    require_all({CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC,
                 CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC});
  for (const auto name :
       {CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC,
        CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC})
    Operand(operation, name).require_dims(channel_dims(scale), ", one per channel");
  for (const auto name : {CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC,
                          CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
                          CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC})
    Operand(operation, name).require_one_element();
  require_both({operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC},
               {operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC});
  require_both({operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC},
               {operation, CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC});
  return attributes_only();
}

FinishedRef finalize_bn_backward_weights(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC});
  const Operand x(operation, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC);
  x.require_set().require_rank(2);
  Operand(operation, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC)
      .require_set()
      .require_dims(x.dims(), ", the dims of CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC");
  for (const auto name : {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC})
    Operand(operation, name).require_set();
  for (const auto name : {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS})
    Operand(operation, name).require_dims(channel_dims(x), ", one per channel");
  return attributes_only();
}

}  // namespace ashlar::cudnn
