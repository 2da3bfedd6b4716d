// Translation of operations that move elements: reshape, concatenation, signals, paged caches and
// band matrices.
#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

// RESHAPE reinterprets memory in another shape. Virtual tensors have no memory, but the strides of
// their descriptors define the element order.
void translate_reshape(Translation& translation, const Record& operation) {
  constexpr auto kX = CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kY = CUDNN_ATTR_OPERATION_RESHAPE_YDESC;
  const TensorFacts from = translation.facts(operation, kX), to = translation.facts(operation, kY);
  const TensorId x = translation.operand(operation, kX);
  if (!from.has_inferred_dims && !to.has_inferred_dims) {
    if (element_count(from.dims) != element_count(to.dims))
      fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "CUDNN_ATTR_OPERATION_RESHAPE_YDESC: got {}, expected the element count of {}",
           to_string(to.dims), to_string(from.dims));
    translation.store(operation, kY, translation.reinterpreted(x, from, to));
    return;
  }
  // With overridden extents, the axes are permuted as in the descriptors.
  const TensorFacts old_from = facts_of(operation.record(kX), {}),
                    old_to = facts_of(operation.record(kY), {});
  TensorFacts now = old_from, then = old_to;
  now.dims = translation.dims(x);
  const int rank = now.dims.rank();
  Dims from_order, to_order;
  const auto order = [](const TensorFacts& facts) {
    Dims axes;
    for (int axis = 0; axis < facts.dims.rank(); ++axis) axes.push_back(axis);
    std::stable_sort(axes.begin(), axes.end(), [&](std::int64_t a, std::int64_t b) {
      return facts.strides[static_cast<int>(a)] > facts.strides[static_cast<int>(b)];
    });
    return axes;
  };
  from_order = order(old_from);
  to_order = order(old_to);
  if (to_order.rank() == rank) {
    for (int position = 0; position < rank; ++position)
      then.dims[static_cast<int>(to_order[position])] =
          now.dims[static_cast<int>(from_order[position])];
  }
  translation.store(operation, kY, translation.reinterpreted(x, now, then));
}

void translate_concat(Translation& translation, const Record& operation) {
  Concat op;
  op.axis = operation.integer(CUDNN_ATTR_OPERATION_CONCAT_AXIS);
  std::vector<TensorId> inputs;
  const auto records = operation.records(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS);
  for (const RecordRef& record : records) inputs.push_back(translation.operand(*record));
  // The input that aliases the output (INPLACE_INDEX) is copied like the others: each element is
  // read before the same address is written.
  translation.add(op, inputs,
                  {translation.result(operation, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC)});
}

// On one device, stream order already guarantees what a signal waits for.
void translate_signal(Translation& translation, const Record& operation) {
  constexpr auto kX = CUDNN_ATTR_OPERATION_SIGNAL_XDESC, kY = CUDNN_ATTR_OPERATION_SIGNAL_YDESC,
                 kFlag = CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC;
  if (operation.has(kX) && operation.has(kY))
    translation.store(operation, kY, translation.operand(operation, kX));
  if (operation.integer(CUDNN_ATTR_OPERATION_SIGNAL_MODE) != CUDNN_SIGNAL_SET ||
      !operation.has(kFlag))
    return;
  const TensorFacts flag = translation.facts(operation, kFlag);
  const auto number = static_cast<double>(operation.integer(CUDNN_ATTR_OPERATION_SIGNAL_VALUE));
  translation.store(
      operation, kFlag,
      translation.expanded(translation.constant(number, flag.dtype, flag.dims.rank()), flag.dims));
}

void translate_paged_cache_load(Translation& translation, const Record& operation) {
  constexpr auto kContainer = CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC,
                 kTable = CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC,
                 kSequence = CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC,
                 kY = CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC;
  const TensorFacts container = translation.facts(operation, kContainer),
                    y = translation.facts(operation, kY);
  PagedCacheLoad op;
  // y is [B, H, D, S], the transposed form for q * k^T, unless D is its last axis. Where the
  // extents allow both, the strides decide: the sequence axis has the larger one.
  const bool could_be_plain = y.dims[3] == container.dims[3],
             could_be_transposed = y.dims[2] == container.dims[3];
  op.transposed = could_be_transposed && (!could_be_plain || y.strides[3] > y.strides[2]);
  const TensorId sequence = translation.operand_or_none(operation, kSequence);
  translation.add(op,
                  {translation.operand(operation, kContainer),
                   translation.operand(operation, kTable), sequence},
                  {translation.result(operation, kY)});
}

namespace {

struct BandNames {
  cudnnBackendAttributeName_t x, y, lower, upper, axis, pad;
};

template <class Op>
void translate_band(Translation& translation, const Record& operation, const BandNames& names,
                    TensorId offset) {
  Op op;
  op.lower_bandwidth = operation.integer(names.lower);
  op.upper_bandwidth = operation.integer(names.upper);
  op.axis = operation.integer_or(names.axis, -1);
  op.pad_value = operation.number_or(names.pad, 0.0);
  translation.add(op, {translation.operand(operation, names.x), offset},
                  {translation.result(operation, names.y)});
}

}  // namespace

void translate_expand_band(Translation& translation, const Record& operation) {
  const TensorId offset = translation.operand_or_none(
      operation, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_KV_TOKEN_OFFSET_DESC);
  translate_band<ExpandBandMatrix>(
      translation, operation,
      {CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC,
       CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_LOWER_BANDWIDTH,
       CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_UPPER_BANDWIDTH,
       CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS,
       CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_PAD_VALUE},
      offset);
}

void translate_contract_band(Translation& translation, const Record& operation) {
  translate_band<ContractBandMatrix>(translation, operation,
                                     {CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_XDESC,
                                      CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC,
                                      CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_LOWER_BANDWIDTH,
                                      CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_UPPER_BANDWIDTH,
                                      CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_AXIS,
                                      CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_PAD_VALUE},
                                     kNoTensor);
}

}  // namespace ashlar::cudnn
