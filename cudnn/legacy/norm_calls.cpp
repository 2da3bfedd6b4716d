#include "legacy/norm_calls.hpp"

#include "legacy/norm_graph.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

NormKind norm_kind(bool per_activation, int ops, cudnnActivationDescriptor_t activation,
                   double epsilon) {
  NormKind kind;
  kind.per_activation = per_activation;
  if (ops < 0 || ops > static_cast<int>(NormOps::add_activation))
    fail(CUDNN_STATUS_BAD_PARAM, "ops: got {}, expected 0 to 2", ops);
  kind.ops = static_cast<NormOps>(ops);
  if (kind.ops != NormOps::norm) kind.activation = activation_of(activation, "activationDesc");
  if (!(epsilon >= CUDNN_BN_MIN_EPSILON))
    fail(CUDNN_STATUS_BAD_PARAM, "epsilon: got {}, expected at least {}", epsilon,
         CUDNN_BN_MIN_EPSILON);
  kind.epsilon = epsilon;
  return kind;
}

TensorSpec derived_norm_spec(const TensorSpec& x, bool per_activation) {
  if (x.dims.rank() < 2)
    fail(CUDNN_STATUS_BAD_PARAM, "xDesc.dims: got {}, expected a batch and channels",
         to_string(x.dims));
  TensorSpec spec;
  spec.dtype = x.dtype == f64 ? f64 : f32;
  spec.dims = per_activation ? x.dims : Dims::filled(x.dims.rank(), 1);
  spec.dims[0] = 1;
  spec.dims[1] = x.dims[1];
  spec.strides = row_major.strides_for(spec.dims);
  return spec;
}

std::optional<TensorSpec> added_spec(const NormKind& kind, const TensorSpec& x,
                                     cudnnTensorDescriptor_t descriptor, const char* name) {
  if (kind.ops != NormOps::add_activation) return std::nullopt;
  const TensorSpec spec = spec_of(descriptor, name);
  require_same_dims(x, "xDesc", spec, name);
  return spec;
}

void require_parameters(const NormKind& kind, const TensorSpec& x, const TensorSpec& other,
                        const char* name) {
  const Dims expected = derived_norm_spec(x, kind.per_activation).dims;
  if (other.dims != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {}, derived from xDesc", name,
         to_string(other.dims), to_string(expected));
}

std::size_t norm_reserve_bytes(const NormKind& kind, const TensorSpec& x) {
  if (is_identity(kind)) return 0;
  return round_up_to_words(byte_size(reserve_spec(kind, x)));
}

}  // namespace ashlar::cudnn
