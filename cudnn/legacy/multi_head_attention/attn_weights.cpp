#include "legacy/multi_head_attention/attn_weights.hpp"

#include "core/answer.hpp"
#include "core/data_type.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_parts.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

AttnWeightLayout::AttnWeightLayout(const cudnnAttnStruct& attention) {
  const std::int64_t heads = attention.heads;
  const auto input = [&](cudnnMultiHeadAttnWeightKind_t kind, std::int64_t rows,
                         std::int64_t columns) {
    place(kind, {heads, rows, columns}, {rows * columns, columns, 1});
  };
  input(CUDNN_MH_ATTN_Q_WEIGHTS, attention.q_projected, attention.q_size);
  input(CUDNN_MH_ATTN_K_WEIGHTS, attention.k_projected, attention.k_size);
  input(CUDNN_MH_ATTN_V_WEIGHTS, attention.v_projected, attention.v_size);
  // The heads of a row lie next to each other: one matrix takes all of them to the result.
  const std::int64_t columns = value_size(attention);
  place(CUDNN_MH_ATTN_O_WEIGHTS, {heads, attention.o_projected, columns},
        {columns, heads * columns, 1});
  if ((attention.mode & CUDNN_ATTN_ENABLE_PROJ_BIASES) == 0) return;
  input(CUDNN_MH_ATTN_Q_BIASES, attention.q_projected, 1);
  input(CUDNN_MH_ATTN_K_BIASES, attention.k_projected, 1);
  input(CUDNN_MH_ATTN_V_BIASES, attention.v_projected, 1);
  place(CUDNN_MH_ATTN_O_BIASES, {1, attention.o_projected, 1}, {attention.o_projected, 1, 1});
}

void AttnWeightLayout::place(cudnnMultiHeadAttnWeightKind_t kind, const Dims& dims,
                             const Dims& strides) {
  if (dims[1] == 0) return;
  parts_[static_cast<std::size_t>(kind)] = {count_, dims, strides};
  count_ += element_count(dims);
}

std::int64_t weight_bytes(const cudnnAttnStruct& attention) {
  return bytes_of(require_floating(attention.dtype, "dataType"),
                  AttnWeightLayout(attention).count());
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

// Without weights addresses count from 0.
cudnnStatus_t cudnnGetMultiHeadAttnWeights(cudnnHandle_t handle, cudnnAttnDescriptor_t attention,
                                           cudnnMultiHeadAttnWeightKind_t kind,
                                           size_t weights_bytes, const void* weights,
                                           cudnnTensorDescriptor_t w_desc, void** address) {
  return answer_older(__func__, [&] {
    object(handle, "handle");
    const cudnnAttnStruct& known = attention_of(attention);
    if (kind < CUDNN_MH_ATTN_Q_WEIGHTS || kind > CUDNN_MH_ATTN_O_BIASES)
      fail(CUDNN_STATUS_BAD_PARAM, "wKind: got {}, expected 0 to {}", static_cast<int>(kind),
           CUDNN_ATTN_WKIND_COUNT - 1);
    if (weights_bytes < static_cast<size_t>(weight_bytes(known)))
      fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSizeInBytes: got {}, expected {}",
           weights_bytes, weight_bytes(known));
    cudnnTensorStruct& descriptor = object(w_desc, "wDesc");
    required(address, "wAddr");
    const AttnWeightLayout layout(known);
    const AttnWeightLayout::Part& part = layout.part(kind);
    TensorSpec spec;
    spec.dtype = require_dtype(known.dtype, "dataType");
    spec.dims = part.dims;
    spec.strides = part.strides;
    set(descriptor, known.dtype, spec);
    const bool exists = part.dims[0] > 0;
    *address = exists ? address_behind(weights, bytes_of(spec.dtype, part.offset)) : nullptr;
  });
}
