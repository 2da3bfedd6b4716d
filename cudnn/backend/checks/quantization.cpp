// Checks of block-scaled quantisation and of grouped matmuls (mixture of experts).
#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

FinishedRef finalize_block_scale_quantize(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE,
                          CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC});
  const Operand x(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC);
  const Operand scale(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC);
  x.require_set().require_floating();
  y.require_set().require_dims(x.dims(),
                               ", the dims of CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC");
  scale.require_set().require_rank(x.rank(), x.rank()).require_floating();
  require_min(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, 1);
  return attributes_only();
}

FinishedRef finalize_block_scale_dequantize(const Record& operation) {
  constexpr auto kBlockSize = CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE;
  require_set(operation, {kBlockSize, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC});
  const Operand x(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC);
  const Operand scale(operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC);
  x.require_set();
  y.require_set()
      .require_dims(x.dims(), ", the dims of CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC")
      .require_floating();
  scale.require_set().require_rank(x.rank(), x.rank()).require_floating();
  require_within(operation, kBlockSize, 1, std::numeric_limits<std::int32_t>::max());
  if (static_cast<int>(operation.integers(kBlockSize).size()) > x.rank())
    fail_bound(kBlockSize, text_of(operation.integers(kBlockSize)),
               fmt::format("at most {} extents, the rank of the tensor", x.rank()));
  return attributes_only();
}

// token [1, T, K], weight [E, K, N], first_token_offset [groups, 1, 1], output [1, rows, N].
FinishedRef finalize_moe_grouped_matmul(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE,
                          CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC});
  const std::int64_t mode = operation.integer(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE);
  const Operand token(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC);
  const Operand weight(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC);
  const Operand offsets(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC);
  const Operand output(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC);
  const Operand index(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC);
  const Operand ks(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC);
  for (const Operand* operand : {&token, &weight, &offsets, &output})
    operand->require_set().require_rank(3, 3);
  if (mode != CUDNN_MOE_GROUPED_MATMUL_MODE_NONE) index.require_set().require_rank(3, 3);
  if (mode == CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER) ks.require_set();
  for (const Operand* operand : {&offsets, &index, &ks}) operand->require_integer();
  require_min(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K, 1);
  if (weight.extent(1) != token.extent(2))
    weight.fail_shape(fmt::format("{} rows", weight.extent(1)),
                      fmt::format("{}, the columns of the tokens", token.extent(2)));
  offsets.require_dims(Extents{offsets.extent(0), 1, 1});
  const std::int64_t rows = mode == CUDNN_MOE_GROUPED_MATMUL_MODE_NONE     ? token.extent(1)
                            : mode == CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER ? index.extent(1)
                                                                           : output.extent(1);
  output.require_dims(Extents{token.extent(0), rows, weight.extent(2)},
                      ", the dims of token * weight");
  return attributes_only();
}

}  // namespace ashlar::cudnn
