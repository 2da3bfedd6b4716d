#include "legacy/multi_head_attention/attn_descriptor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"

namespace ashlar::cudnn {

namespace {

void check(const cudnnAttnStruct& attention) {
  constexpr unsigned kKnownBits = CUDNN_ATTN_QUERYMAP_ONE_TO_ONE | CUDNN_ATTN_ENABLE_PROJ_BIASES;
  if ((attention.mode & ~kKnownBits) != 0)
    fail(CUDNN_STATUS_BAD_PARAM, "attnMode: got {}, expected bits of {}", attention.mode,
         kKnownBits);
  if (!(std::isfinite(attention.softmax_scale) && attention.softmax_scale >= 0.0))
    fail(CUDNN_STATUS_BAD_PARAM, "smScaler: got {}, expected at least 0", attention.softmax_scale);
  require_floating(attention.dtype, "dataType");
  require_floating(attention.compute, "computePrec");
  if (attention.math < CUDNN_DEFAULT_MATH || attention.math > CUDNN_FMA_MATH)
    fail(CUDNN_STATUS_BAD_PARAM, "mathType: got {}, expected 0 to {}",
         static_cast<int>(attention.math), static_cast<int>(CUDNN_FMA_MATH));
  struct Size {
    const char* parameter;
    int value, min;
  };
  for (const Size& size : {Size{"nHeads", attention.heads, 1},
                           {"qSize", attention.q_size, 1},
                           {"kSize", attention.k_size, 1},
                           {"vSize", attention.v_size, 1},
                           {"qProjSize", attention.q_projected, 0},
                           {"kProjSize", attention.k_projected, 0},
                           {"vProjSize", attention.v_projected, 0},
                           {"oProjSize", attention.o_projected, 0},
                           {"qoMaxSeqLength", attention.max_q_length, 1},
                           {"kvMaxSeqLength", attention.max_kv_length, 1},
                           {"maxBatchSize", attention.max_batch, 1},
                           {"maxBeamSize", attention.max_beam, 1}})
    if (size.value < size.min)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected at least {}", size.parameter, size.value,
           size.min);
  const int q = attention.q_projected > 0 ? attention.q_projected : attention.q_size;
  const int k = attention.k_projected > 0 ? attention.k_projected : attention.k_size;
  if (q != k)
    fail(CUDNN_STATUS_BAD_PARAM,
         "qProjSize, kProjSize: got queries of {} and keys of {} elements, expected equal sizes", q,
         k);
  const double heads = attention.heads, batch = attention.max_batch, beams = attention.max_beam,
               queries = attention.max_q_length, keys = attention.max_kv_length,
               values = static_cast<double>(value_size(attention));
  if (heads * values > std::numeric_limits<int>::max())
    fail(CUDNN_STATUS_BAD_PARAM,
         "nHeads, vSize: got {} heads of {}, expected a product that fits into an int",
         attention.heads, values);
  const double widest = std::max({attention.q_size, attention.k_size, attention.v_size, q,
                                  attention.v_projected, attention.o_projected});
  require_countable("weights", {heads, widest, widest + 1.0, 8.0});
  require_countable("sequences", {batch, beams, std::max(queries, keys), heads, widest});
  require_countable("attention", {batch, beams, queries, heads, keys});
}

}  // namespace

const cudnnAttnStruct& attention_of(cudnnAttnDescriptor_t descriptor) {
  const cudnnAttnStruct& attention = object(descriptor, "attnDesc");
  if (!attention.is_set)
    fail(CUDNN_STATUS_BAD_PARAM,
         "attnDesc: got a descriptor that was never set, expected cudnnSetAttnDescriptor() first");
  return attention;
}

MultiHeadAttentionAttributes attributes_of(const cudnnAttnStruct& attention) {
  MultiHeadAttentionAttributes op;
  op.heads = attention.heads;
  op.q_projection = attention.q_projected;
  op.k_projection = attention.k_projected;
  op.v_projection = attention.v_projected;
  op.o_projection = attention.o_projected;
  op.projection_biases = (attention.mode & CUDNN_ATTN_ENABLE_PROJ_BIASES) != 0;
  op.softmax_scale = attention.softmax_scale;
  return op;
}

std::int64_t value_size(const cudnnAttnStruct& attention) {
  return attention.v_projected > 0 ? attention.v_projected : attention.v_size;
}

std::int64_t output_size(const cudnnAttnStruct& attention) {
  return attention.o_projected > 0 ? attention.o_projected
                                   : attention.heads * value_size(attention);
}

bool has_key_beams(const cudnnAttnStruct& attention) {
  return (attention.mode & CUDNN_ATTN_QUERYMAP_ONE_TO_ONE) != 0;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateAttnDescriptor(cudnnAttnDescriptor_t* attention) {
  return guarded_legacy(__func__, [&] { create_object(attention, "attnDesc"); });
}

cudnnStatus_t cudnnDestroyAttnDescriptor(cudnnAttnDescriptor_t attention) {
  return guarded_legacy(__func__, [&] { destroy_object(attention, "attnDesc"); });
}

cudnnStatus_t cudnnSetAttnDescriptor(cudnnAttnDescriptor_t attention, unsigned mode, int heads,
                                     double softmax_scale, cudnnDataType_t dtype,
                                     cudnnDataType_t compute, cudnnMathType_t math,
                                     cudnnDropoutDescriptor_t attention_dropout,
                                     cudnnDropoutDescriptor_t output_dropout, int q_size,
                                     int k_size, int v_size, int q_projected, int k_projected,
                                     int v_projected, int o_projected, int max_q_length,
                                     int max_kv_length, int max_batch, int max_beam) {
  return guarded_legacy(__func__, [&] {
    cudnnAttnStruct& fields = object(attention, "attnDesc");
    const cudnnAttnStruct wanted{.is_set = true,
                                 .mode = mode,
                                 .heads = heads,
                                 .softmax_scale = softmax_scale,
                                 .dtype = dtype,
                                 .compute = compute,
                                 .math = math,
                                 .attention_dropout = attention_dropout,
                                 .output_dropout = output_dropout,
                                 .q_size = q_size,
                                 .k_size = k_size,
                                 .v_size = v_size,
                                 .q_projected = q_projected,
                                 .k_projected = k_projected,
                                 .v_projected = v_projected,
                                 .o_projected = o_projected,
                                 .max_q_length = max_q_length,
                                 .max_kv_length = max_kv_length,
                                 .max_batch = max_batch,
                                 .max_beam = max_beam};
    check(wanted);
    fields = wanted;
  });
}

cudnnStatus_t cudnnGetAttnDescriptor(cudnnAttnDescriptor_t attention, unsigned* mode, int* heads,
                                     double* softmax_scale, cudnnDataType_t* dtype,
                                     cudnnDataType_t* compute, cudnnMathType_t* math,
                                     cudnnDropoutDescriptor_t* attention_dropout,
                                     cudnnDropoutDescriptor_t* output_dropout, int* q_size,
                                     int* k_size, int* v_size, int* q_projected, int* k_projected,
                                     int* v_projected, int* o_projected, int* max_q_length,
                                     int* max_kv_length, int* max_batch, int* max_beam) {
  return guarded_legacy(__func__, [&] {
    const cudnnAttnStruct& fields = attention_of(attention);
    write_optional(mode, fields.mode);
    write_optional(heads, fields.heads);
    write_optional(softmax_scale, fields.softmax_scale);
    write_optional(dtype, fields.dtype);
    write_optional(compute, fields.compute);
    write_optional(math, fields.math);
    write_optional(attention_dropout, fields.attention_dropout);
    write_optional(output_dropout, fields.output_dropout);
    write_optional(q_size, fields.q_size);
    write_optional(k_size, fields.k_size);
    write_optional(v_size, fields.v_size);
    write_optional(q_projected, fields.q_projected);
    write_optional(k_projected, fields.k_projected);
    write_optional(v_projected, fields.v_projected);
    write_optional(o_projected, fields.o_projected);
    write_optional(max_q_length, fields.max_q_length);
    write_optional(max_kv_length, fields.max_kv_length);
    write_optional(max_batch, fields.max_batch);
    write_optional(max_beam, fields.max_beam);
  });
}
