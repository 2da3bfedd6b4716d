// Operations with inconsistent tensors: normalisation, attention, paged caches, band matrices,
// block scales, grouped matmuls.
#include "cudnn/bad_calls.hpp"
#include "cudnn/bad_operation.hpp"

namespace ashlar::cudnn::test {

namespace {

using Dims = std::vector<std::int64_t>;

// A valid operation with some of its tensors replaced; empty dims remove a tensor.
Tensors replaced(Tensors tensors, const Tensors& bad) {
  for (const auto& [name, shape] : bad) {
    std::erase_if(tensors, [name = name](const auto& entry) { return entry.first == name; });
    if (!shape.dims.empty()) tensors.emplace_back(name, shape);
  }
  return tensors;
}

Call norm_forward(const Tensors& bad, cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM) {
  return operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, Dims{1, 4, 1, 1}},
                             {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, Dims{2, 4, 3, 3}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_NORM_FWD_MODE, mode},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING}});
}
Call norm_backward(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, Dims{2, 4, 3, 3}}},
                            bad),
                   {}, {{CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_LAYER_NORM}});
}
Call gen_stats(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, Dims{1, 4, 1, 1}},
                             {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, Dims{1, 4, 1, 1}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM},
                    {CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT}});
}
Call bn_finalize(const Tensors& bad) {
  return operation(
      CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
      replaced({{CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, Dims{1, 4, 1, 1}},
                {CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC, Dims{1, 4, 1, 1}},
                {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, Dims{1, 4, 1, 1}},
                {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC, Dims{1, 4, 1, 1}},
                {CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC, Dims{1, 1, 1, 1}}},
               bad),
      {},
      {{CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_BN_FINALIZE_STATISTICS_TRAINING},
       {CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC, CUDNN_DATA_FLOAT}});
}
Call bn_weights(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, Dims{2, 4, 3, 3}},
                             {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, Dims{1, 4, 1, 1}},
                             {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, Dims{1, 4, 1, 1}},
                             {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, Dims{1, 4, 1, 1}}},
                            bad),
                   {}, {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT}});
}

Call attention(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Dims{2, 4, 8, 16}},
                             {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Dims{2, 2, 9, 16}},
                             {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Dims{2, 2, 9, 32}},
                             {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, Dims{2, 4, 8, 32}}},
                            bad),
                   {});
}
Call attention_backward(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, Dims{2, 4, 8, 16}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, Dims{2, 2, 9, 16}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, Dims{2, 2, 9, 32}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, Dims{2, 4, 8, 32}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, Dims{2, 4, 8, 32}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, Dims{2, 4, 8, 1}},
                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, Dims{2, 4, 8, 16}}},
                            bad),
                   {});
}
Call paged_load(const Tensors& bad) {
  return operation(
      CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR,
      replaced({{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, Dims{10, 2, 4, 16}},
                {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC,
                 {Dims{3, 1, 5, 1}, CUDNN_DATA_INT32}},
                {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC,
                 {Dims{3, 1, 1, 1}, CUDNN_DATA_INT32}},
                {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, Dims{3, 2, 20, 16}}},
               bad),
      {});
}
Call expand_band(const Tensors& bad, std::int64_t lower, std::int64_t axis) {
  return operation(CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC, Dims{2, 8, 4}},
                             {CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC, Dims{2, 8, 8}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_LOWER_BANDWIDTH, lower},
                    {CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_UPPER_BANDWIDTH, std::int64_t{2}},
                    {CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS, axis}});
}
Call quantize(const Tensors& bad, std::int32_t block = 16) {
  return operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC, Dims{4, 64}},
                             {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
                              {Dims{4, 64}, CUDNN_DATA_FP8_E4M3}},
                             {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC,
                              {Dims{4, 4}, CUDNN_DATA_FP8_E8M0}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, block},
                    {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT}});
}
Call dequantize(const Tensors& bad) {
  return operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC,
                              {Dims{4, 64}, CUDNN_DATA_FP8_E4M3}},
                             {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, Dims{4, 64}},
                             {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC,
                              {Dims{4, 4}, CUDNN_DATA_FP8_E8M0}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, std::int32_t{16}},
                    {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT}});
}
Call experts(cudnnMoeGroupedMatmulMode_t mode, const Tensors& bad, std::int32_t top_k = 1) {
  return operation(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR,
                   replaced({{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC, Dims{1, 10, 8}},
                             {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC, Dims{3, 8, 6}},
                             {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC,
                              {Dims{3, 1, 1}, CUDNN_DATA_INT32}},
                             {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC, Dims{1, 10, 6}}},
                            bad),
                   {},
                   {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE, mode},
                    {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC, CUDNN_DATA_FLOAT},
                    {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K, top_k}});
}

BadCalls norm_calls() {
  return {
      {"norm: empty", operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, {}, {})},
      {"norm: no x", norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, Dims{}}})},
      {"norm: no y", norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, Dims{}}})},
      {"norm: shape of y", norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, Dims{2, 4, 3, 4}}})},
      {"norm: shape of scale",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, Dims{1, 5, 1, 1}}})},
      {"norm: scale in integers", norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC,
                                                 {Dims{1, 4, 1, 1}, CUDNN_DATA_INT32}}})},
      {"norm: shape of mean",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, Dims{3, 4, 1, 1}}})},
      {"norm: statistics of no group",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, Dims{2, 3, 1, 1}}},
                    CUDNN_GROUP_NORM)},
      {"norm: epsilons",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, Dims{1, 4, 1, 1}}})},
      {"norm: running mean alone",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, Dims{1, 4, 1, 1}}})},
      {"norm: next running variance alone",
       norm_forward({{CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, Dims{1, 4, 1, 1}}})},
      {"norm backward: empty", operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, {}, {})},
      {"norm backward: no dy", norm_backward({{CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, Dims{}}})},
      {"norm backward: shape of dx",
       norm_backward({{CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, Dims{2, 4, 3}}})},
      {"norm backward: shape of the scale's gradient",
       norm_backward({{CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, Dims{1, 4, 2, 1}}})},
      {"statistics: empty", operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, {}, {})},
      {"statistics: shape of the sums",
       gen_stats({{CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, Dims{1, 5, 1, 1}}})},
      {"statistics: no sums of squares",
       gen_stats({{CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, Dims{}}})},
      {"batch norm parts: empty",
       operation(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR, {}, {})},
      {"batch norm parts: no sums",
       bn_finalize({{CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, Dims{}}})},
      {"batch norm parts: no count",
       bn_finalize({{CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC, Dims{}}})},
      {"batch norm parts: channels of the bias",
       bn_finalize({{CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC, Dims{1, 3, 1, 1}}})},
      {"batch norm parts: counts",
       bn_finalize({{CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC, Dims{1, 4, 1, 1}}})},
      {"batch norm weights: empty",
       operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, {}, {})},
      {"batch norm weights: shape of dy",
       bn_weights({{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, Dims{2, 4, 3, 2}}})},
      {"batch norm weights: no mean",
       bn_weights({{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, Dims{}}})},
      {"batch norm weights: channels of the bias",
       bn_weights({{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, Dims{1, 8, 1, 1}}})},
  };
}

BadCalls attention_calls() {
  return {
      {"attention: empty", operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, {}, {})},
      {"attention: no v", attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Dims{}}})},
      {"attention: q of rank 3",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Dims{8, 8, 16}}})},
      {"attention: width of k",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Dims{2, 2, 9, 24}}})},
      {"attention: heads of k",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Dims{2, 3, 9, 16}}})},
      {"attention: batch of k",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Dims{3, 2, 9, 16}}})},
      {"attention: length of v",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Dims{2, 2, 8, 32}}})},
      {"attention: shape of o",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, Dims{2, 4, 8, 16}}})},
      {"attention: shape of the statistics",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, Dims{2, 4, 8, 2}}})},
      {"attention: four scales",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, Dims{1, 4, 1, 1}}})},
      {"attention: lengths in floats",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, Dims{2, 1, 1, 1}}})},
      {"attention: lengths of another batch",
       attention(
           {{CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, {Dims{3, 1, 1, 1}, CUDNN_DATA_INT32}}})},
      {"attention: pages in floats",
       attention({{CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, Dims{2, 1, 4, 1}}})},
      {"attention backward: empty", operation(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, {}, {})},
      {"attention backward: no statistics",
       attention_backward({{CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, Dims{}}})},
      {"attention backward: shape of do",
       attention_backward({{CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, Dims{2, 4, 8, 16}}})},
      {"attention backward: shape of dk",
       attention_backward({{CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, Dims{2, 4, 9, 16}}})},
      {"paged load: empty", operation(CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, {}, {})},
      {"paged load: too many rows",
       paged_load({{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, Dims{3, 2, 21, 16}}})},
      {"paged load: heads of y",
       paged_load({{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, Dims{3, 4, 20, 16}}})},
      {"paged load: table in floats",
       paged_load({{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, Dims{3, 1, 5, 1}}})},
      {"paged load: lengths of another batch",
       paged_load({{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC,
                    {Dims{4, 1, 1, 1}, CUDNN_DATA_INT32}}})},
  };
}

}  // namespace

BadCalls bad_norm_and_attention_calls() {
  BadCalls calls = norm_calls();
  for (BadCall& call : attention_calls()) calls.push_back(std::move(call));
  const BadCalls others = {
      {"expand band: empty",
       operation(CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR, {}, {})},
      {"expand band: bandwidth -1", expand_band({}, -1, -1)},
      {"expand band: axis 0", expand_band({}, 1, 0)},
      {"expand band: axis 3", expand_band({}, 1, 3)},
      {"expand band: width of the band", expand_band({}, 3, -1)},
      {"expand band: rows of y",
       expand_band({{CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC, Dims{2, 9, 8}}}, 1, -1)},
      {"contract band: empty",
       operation(CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR, {}, {})},
      {"quantize: empty",
       operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR, {}, {})},
      {"quantize: blocks of 0", quantize({}, 0)},
      {"quantize: integers", quantize({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC,
                                        {Dims{4, 64}, CUDNN_DATA_INT32}}})},
      {"quantize: shape of y",
       quantize({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC, Dims{4, 32}}})},
      {"quantize: rank of the scales",
       quantize({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC, Dims{16}}})},
      {"dequantize: empty",
       operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR, {}, {})},
      {"dequantize: y in integers", dequantize({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
                                                 {Dims{4, 64}, CUDNN_DATA_INT8}}})},
      {"dequantize: no scales",
       dequantize({{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, Dims{}}})},
      {"experts: empty", operation(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR, {}, {})},
      {"experts: top 0", experts(CUDNN_MOE_GROUPED_MATMUL_MODE_NONE, {}, 0)},
      {"experts: rows of the weights",
       experts(CUDNN_MOE_GROUPED_MATMUL_MODE_NONE,
               {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC, Dims{3, 7, 6}}})},
      {"experts: offsets in floats",
       experts(CUDNN_MOE_GROUPED_MATMUL_MODE_NONE,
               {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC, Dims{3, 1, 1}}})},
      {"experts: columns of the output",
       experts(CUDNN_MOE_GROUPED_MATMUL_MODE_NONE,
               {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC, Dims{1, 10, 8}}})},
      {"experts: gather without indices", experts(CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER, {})},
      {"experts: scatter without ks",
       experts(CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER,
               {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC,
                 {Dims{1, 10, 1}, CUDNN_DATA_INT32}}})},
  };
  calls.insert(calls.end(), others.begin(), others.end());
  return calls;
}

}  // namespace ashlar::cudnn::test
