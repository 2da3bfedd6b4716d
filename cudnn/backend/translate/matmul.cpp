#include <algorithm>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

constexpr auto kA = CUDNN_ATTR_OPERATION_MATMUL_ADESC, kB = CUDNN_ATTR_OPERATION_MATMUL_BDESC,
               kC = CUDNN_ATTR_OPERATION_MATMUL_CDESC;

// Repeats the batches of the operand with fewer (grouped-query attention: fewer key heads than
// query heads).
void match_batches(Translation& translation, TensorId& a, TensorId& b) {
  const int rank = std::max(translation.dims(a).rank(), translation.dims(b).rank());
  a = translation.with_rank(a, rank);
  b = translation.with_rank(b, rank);
  for (int axis = 0; axis < rank - 2; ++axis) {
    const std::int64_t m = translation.dims(a)[axis], n = translation.dims(b)[axis];
    if (m == n || m <= 1 || n <= 1) continue;
    if (m % n == 0) b = translation.repeated(b, axis, m / n);
    if (n % m == 0) a = translation.repeated(a, axis, n / m);
  }
}

}  // namespace

void translate_matmul(Translation& translation, const Record& operation) {
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_MATMUL_DESC);
  TensorId a = translation.operand(operation, kA), b = translation.operand(operation, kB);
  match_batches(translation, a, b);
  Matmul op;
  op.padding_value = descriptor.number_or(CUDNN_ATTR_MATMUL_PADDING_VALUE, 0.0);
  const int rank = translation.dims(a).rank();
  std::vector<TensorId> inputs = {a, b};
  for (const auto attribute : {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                               CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                               CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC}) {
    const TensorId lengths = translation.operand_or_none(operation, attribute);
    inputs.push_back(lengths == kNoTensor ? lengths : translation.with_rank(lengths, rank));
  }
  const auto requested = static_cast<cudnnDataType_t>(
      descriptor.integer_or(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT));
  const DType compute = compute_of(translation, requested, std::array{a, b});
  translation.add(op, inputs, {translation.result(operation, kC)}, compute);
}

}  // namespace ashlar::cudnn
