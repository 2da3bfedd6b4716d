// Translation of SDPA forward and backward operations.
#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

// A block mask: bytes that pack eight bits each, or booleans.
TensorId block_mask(Translation& translation, const Record& operation, std::int64_t columns) {
  constexpr auto kMask = CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC;
  if (operation.record_or_null(kMask) == nullptr) return kNoTensor;
  const TensorFacts mask = translation.facts(operation, kMask);
  if (mask.dtype == boolean) return translation.operand(operation, kMask);
  if (bit_width(mask.dtype) != 8 || mask.dims.rank() != 4)
    fail(CUDNN_STATUS_BAD_PARAM,
         "CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC: got {} {}, expected UINT8 or BOOLEAN with "
         "4 axes",
         to_string(mask.dtype), to_string(mask.dims));
  Dims dims = mask.dims, strides = mask.strides;
  dims[3] = columns;
  for (std::int64_t& stride : strides) stride *= 8;
  strides[3] = 1;
  return translation.reinterpreted_operand(operation, kMask, boolean, dims, strides);
}

DType compute_for(const Translation& translation, TensorId q) {
  return translation.tensor(q).dtype == f64 ? f64 : f32;
}

TensorId lengths(Translation& translation, const Record& operation,
                 cudnnBackendAttributeName_t attribute, std::int64_t batches) {
  const TensorId id = translation.operand_or_none(operation, attribute);
  if (id == kNoTensor || translation.dims(id).rank() == 4) return id;
  return translation.value(Reshape{{batches, 1, 1, 1}}, {id}, translation.tensor(id).dtype);
}

}  // namespace

void translate_sdpa_forward(Translation& translation, const Record& operation) {
  using Op = AttentionForward;
  Op op;
  std::vector<TensorId> inputs(Op::block_mask + 1, kNoTensor);
  inputs[Op::q] = translation.ragged_operand(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
  inputs[Op::k] = translation.ragged_operand(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
  inputs[Op::v] = translation.ragged_operand(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
  inputs[Op::scale_tensor] =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
  inputs[Op::page_table_k] =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC);
  inputs[Op::page_table_v] =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC);
  const std::int64_t batches = translation.dims(inputs[Op::q])[0];
  inputs[Op::seq_len_q] =
      lengths(translation, operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, batches);
  inputs[Op::seq_len_kv] =
      lengths(translation, operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, batches);
  const Dims k = translation.dims(inputs[Op::k]);
  const TensorId table = inputs[Op::page_table_k];
  const std::int64_t keys = k.rank() < 4         ? 0
                            : table == kNoTensor ? k[2]
                                                 : translation.dims(table)[2] * k[2];
  inputs[Op::block_mask] =
      block_mask(translation, operation, (keys + op.block_columns - 1) / op.block_columns);
  std::vector<TensorId> outputs(Op::stats + 1, kNoTensor);
  outputs[Op::o] = translation.ragged_result(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
  if (operation.record_or_null(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC) != nullptr)
    outputs[Op::stats] =
        translation.ragged_result(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC);
  if (inputs[Op::scale_tensor] == kNoTensor) op.scale = 1.0;
  translation.add(op, inputs, outputs, compute_for(translation, inputs[Op::q]));
}

void translate_sdpa_backward(Translation& translation, const Record& operation) {
  using Op = AttentionBackward;
  Op op;
  std::vector<TensorId> inputs(Op::scale_tensor + 1, kNoTensor);
  const auto read = [&](int slot, cudnnBackendAttributeName_t attribute) {
    inputs[static_cast<std::size_t>(slot)] = translation.ragged_operand(operation, attribute);
  };
  read(Op::q, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC);
  read(Op::k, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC);
  read(Op::v, CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC);
  read(Op::o, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC);
  read(Op::d_o, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC);
  read(Op::stats, CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC);
  inputs[Op::scale_tensor] =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC);
  const std::int64_t batches = translation.dims(inputs[Op::q])[0];
  inputs[Op::seq_len_q] =
      lengths(translation, operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC, batches);
  inputs[Op::seq_len_kv] =
      lengths(translation, operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC, batches);
  if (inputs[Op::scale_tensor] == kNoTensor) op.scale = 1.0;
  std::vector<TensorId> outputs;
  for (const auto attribute :
       {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
        CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC})
    outputs.push_back(translation.ragged_result(operation, attribute));
  translation.add(op, inputs, outputs, compute_for(translation, inputs[Op::q]));
}

}  // namespace ashlar::cudnn
