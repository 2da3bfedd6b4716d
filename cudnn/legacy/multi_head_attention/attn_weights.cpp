#include "legacy/multi_head_attention/attn_weights.hpp"

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

AttnWeightLayout::AttnWeightLayout(const cudnnAttnStruct& attention) {
  const std::int64_t heads = attention.heads;
  const auto input = [&](cudnnMultiHeadAttnWeightKind_t kind, std::int64_t rows,
                         std::int64_t columns) {
    append_part(kind, {heads, rows, columns}, {rows, 1, heads * rows});
  };
  const auto bias = [&](cudnnMultiHeadAttnWeightKind_t kind, std::int64_t of, std::int64_t rows) {
    append_part(kind, {of, rows, 1}, {rows, 1, 1});
  };
  input(CUDNN_MH_ATTN_Q_WEIGHTS, attention.q_projected, attention.q_size);
  input(CUDNN_MH_ATTN_K_WEIGHTS, attention.k_projected, attention.k_size);
  input(CUDNN_MH_ATTN_V_WEIGHTS, attention.v_projected, attention.v_size);
  // The output projection is one matrix over the concatenated heads.
  const std::int64_t columns = value_size(attention);
  append_part(CUDNN_MH_ATTN_O_WEIGHTS, {heads, attention.o_projected, columns},
              {attention.o_projected * columns, 1, attention.o_projected});
  if ((attention.mode & CUDNN_ATTN_ENABLE_PROJ_BIASES) == 0) return;
  bias(CUDNN_MH_ATTN_Q_BIASES, heads, attention.q_projected);
  bias(CUDNN_MH_ATTN_K_BIASES, heads, attention.k_projected);
  bias(CUDNN_MH_ATTN_V_BIASES, heads, attention.v_projected);
  bias(CUDNN_MH_ATTN_O_BIASES, 1, attention.o_projected);
}

void AttnWeightLayout::append_part(cudnnMultiHeadAttnWeightKind_t kind, const Dims& dims,
                                   const Dims& strides) {
  if (dims[1] == 0) return;
  parts_[static_cast<std::size_t>(kind)] = {count_, dims, strides};
  count_ += element_count(dims);
}

Value AttnWeightLayout::transposed(Graph& graph, Value weights, bool from_columns) const {
  std::vector<Value> parts;
  std::int64_t end = 0;
  for (int kind = CUDNN_MH_ATTN_Q_WEIGHTS; kind <= CUDNN_MH_ATTN_O_WEIGHTS; ++kind) {
    const Part& part = parts_[static_cast<std::size_t>(kind)];
    const std::int64_t count = element_count(part.dims);
    if (count == 0) continue;
    // Column-major: the columns of all heads are consecutive, each of `rows` elements.
    const std::int64_t rows = part.strides[2], columns = count / rows;
    end = part.offset + count;
    const Value flat = graph.slice(weights, {part.offset}, {end});
    const Value matrix =
        graph.reshape(flat, from_columns ? Dims{columns, rows} : Dims{rows, columns});
    OutputSpec packed;
    packed.layout = ashlar::row_major;
    parts.push_back(graph.reshape(graph.transpose(matrix, {1, 0}, packed), {count}));
  }
  if (end < count_) parts.push_back(graph.slice(weights, {end}, {count_}));
  return parts.size() == 1 ? parts.front() : graph.concat(parts, 0);
}

Value AttnWeightLayout::row_major(Graph& graph, Value weights) const {
  return transposed(graph, weights, true);
}
Value AttnWeightLayout::column_major(Graph& graph, Value weights) const {
  return transposed(graph, weights, false);
}

std::int64_t weight_bytes(const cudnnAttnStruct& attention) {
  return bytes_of(require_floating(attention.dtype, "dataType"),
                  AttnWeightLayout(attention).count());
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

// With null weights the address is an offset. A part that does not exist has rank 0 and a null
// address.
cudnnStatus_t cudnnGetMultiHeadAttnWeights(cudnnHandle_t handle, cudnnAttnDescriptor_t attention,
                                           cudnnMultiHeadAttnWeightKind_t kind,
                                           size_t weights_bytes, const void* weights,
                                           cudnnTensorDescriptor_t w_desc, void** address) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnAttnStruct& fields = attention_of(attention);
    if (kind < CUDNN_MH_ATTN_Q_WEIGHTS || kind > CUDNN_MH_ATTN_O_BIASES)
      fail(CUDNN_STATUS_BAD_PARAM, "wKind: got {}, expected 0 to {}", static_cast<int>(kind),
           CUDNN_ATTN_WKIND_COUNT - 1);
    if (weights_bytes < static_cast<size_t>(weight_bytes(fields)))
      fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSizeInBytes: got {}, expected {}",
           weights_bytes, weight_bytes(fields));
    cudnnTensorStruct& descriptor = object(w_desc, "wDesc");
    required(address, "wAddr");
    const AttnWeightLayout layout(fields);
    const AttnWeightLayout::Part& part = layout.part(kind);
    TensorSpec spec;
    spec.dtype = require_dtype(fields.dtype, "dataType");
    const bool exists = part.dims[0] > 0;
    if (exists) {
      spec.dims = part.dims;
      spec.strides = part.strides;
    }
    set(descriptor, fields.dtype, spec);
    *address = exists ? offset_address(weights, bytes_of(spec.dtype, part.offset)) : nullptr;
  });
}
