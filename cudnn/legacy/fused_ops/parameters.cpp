#include "legacy/fused_ops/parameters.hpp"

#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/fused_ops/labels.hpp"
#include "legacy/set_object.hpp"

namespace ashlar::cudnn {

namespace {

// Stores a copy of the caller's descriptor in the map, or erases it when `param` is null.
template <class Map, class Label>
void store_copy(Map& map, Label label, const void* param) {
  using Descriptor = typename Map::mapped_type;
  if (param == nullptr)
    map.erase(label);
  else
    map[label] = set_object(static_cast<Descriptor*>(const_cast<void*>(param)), "param");
}
template <class Descriptor>
void store_copy(std::optional<Descriptor>& stored, const void* param) {
  if (param == nullptr)
    stored.reset();
  else
    stored = set_object(static_cast<Descriptor*>(const_cast<void*>(param)), "param");
}

// An enumeration that the caller passed by pointer, checked before it is used.
template <class Enum>
Enum read_enum(const void* param, Enum last) {
  const int number = *static_cast<const int*>(required(param, "param"));
  return require_enum(static_cast<Enum>(number), last, "param");
}

void set(FusedConstants& constants, const ConstantLabel& label, const void* param) {
  switch (label.kind) {
    case ConstantKind::tensor: store_copy(constants.tensors, label.label, param); break;
    case ConstantKind::filter: store_copy(constants.filters, label.label, param); break;
    case ConstantKind::convolution: store_copy(constants.conv, param); break;
    case ConstantKind::activation: store_copy(constants.activation, param); break;
    case ConstantKind::bn_mode:
      constants.bn_mode = read_enum(param, CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
      break;
    case ConstantKind::placeholder:
      constants.pointers[label.label] = read_enum(param, CUDNN_PTR_16B_ALIGNED);
      break;
  }
}

// Copies to the caller's descriptor; false when nothing is stored.
template <class Descriptor>
bool copy_to_caller(const Descriptor* stored, void* param) {
  if (stored == nullptr) return false;
  object(static_cast<Descriptor*>(param), "param") = *stored;
  return true;
}
template <class Map, class Label>
const typename Map::mapped_type* find_in(const Map& map, Label label) {
  const auto found = map.find(label);
  return found != map.end() ? &found->second : nullptr;
}

bool get(const FusedConstants& constants, const ConstantLabel& label, void* param) {
  switch (label.kind) {
    case ConstantKind::tensor:
      return copy_to_caller(find_in(constants.tensors, label.label), param);
    case ConstantKind::filter:
      return copy_to_caller(find_in(constants.filters, label.label), param);
    case ConstantKind::convolution:
      return copy_to_caller(constants.conv ? &*constants.conv : nullptr, param);
    case ConstantKind::activation:
      return copy_to_caller(constants.activation ? &*constants.activation : nullptr, param);
    case ConstantKind::bn_mode:
      *static_cast<cudnnBatchNormMode_t*>(param) = constants.bn_mode;
      return true;
    case ConstantKind::placeholder: {
      const auto* stored = find_in(constants.pointers, label.label);
      *static_cast<cudnnFusedOpsPointerPlaceHolder_t*>(param) =
          stored != nullptr ? *stored : CUDNN_PTR_NULL;
      return true;
    }
  }
  return false;
}

template <class T>
T read(const void* param) {
  return *static_cast<const T*>(required(param, "ptr"));
}

template <class Map>
TensorSpec spec_in(const Map& map, cudnnFusedOpsConstParamLabel_t label) {
  const auto* descriptor = find_in(map, label);
  if (descriptor == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM, "{}: not set, expected a descriptor", name_of(label));
  return descriptor->spec;
}

}  // namespace

cudnnFusedOps_t require_fusion(cudnnFusedOps_t ops) {
  return require_enum(ops, CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM, "ops");
}

bool has(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t placeholder) {
  const auto* stored = find_in(constants.pointers, placeholder);
  return stored != nullptr && *stored != CUDNN_PTR_NULL;
}

TensorSpec tensor_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label) {
  return spec_in(constants.tensors, label);
}
TensorSpec filter_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label) {
  return spec_in(constants.filters, label);
}

const cudnnConvolutionStruct& conv_of(const FusedConstants& constants) {
  if (!constants.conv)
    fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_PARAM_CONV_DESC: not set, expected a descriptor");
  return *constants.conv;
}

Activation activation_of(const FusedConstants& constants) {
  return constants.activation.value_or(Activation{});
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t* constants,
                                                cudnnFusedOps_t ops) {
  return guarded_legacy(__func__, [&] {
    create_object(constants, "constPack", FusedConstants{.ops = require_fusion(ops)});
  });
}

cudnnStatus_t cudnnDestroyFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t constants) {
  return guarded_legacy(__func__, [&] { destroy_object(constants, "constPack"); });
}

cudnnStatus_t cudnnSetFusedOpsConstParamPackAttribute(cudnnFusedOpsConstParamPack_t constants,
                                                      cudnnFusedOpsConstParamLabel_t label,
                                                      const void* param) {
  return guarded_legacy(__func__, [&] {
    auto& pack = object(constants, "constPack");
    set(pack, find_label(label, pack.ops), param);
  });
}

cudnnStatus_t cudnnGetFusedOpsConstParamPackAttribute(cudnnFusedOpsConstParamPack_t constants,
                                                      cudnnFusedOpsConstParamLabel_t label,
                                                      void* param, int* is_null) {
  return guarded_legacy(__func__, [&] {
    const auto& pack = object(constants, "constPack");
    const auto& known = find_label(label, pack.ops);
    required(param, "param");
    *required(is_null, "isNULL") = get(pack, known, param) ? 0 : 1;
  });
}

cudnnStatus_t cudnnCreateFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t* variants,
                                                  cudnnFusedOps_t ops) {
  return guarded_legacy(__func__, [&] {
    create_object(variants, "varPack", FusedVariants{.ops = require_fusion(ops)});
  });
}

cudnnStatus_t cudnnDestroyFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t variants) {
  return guarded_legacy(__func__, [&] { destroy_object(variants, "varPack"); });
}

// Scalars are copied here, so that they need not outlive the call.
cudnnStatus_t cudnnSetFusedOpsVariantParamPackAttribute(cudnnFusedOpsVariantParamPack_t variants,
                                                        cudnnFusedOpsVariantParamLabel_t label,
                                                        void* ptr) {
  return guarded_legacy(__func__, [&] {
    auto& pack = object(variants, "varPack");
    switch (find_label(label, pack.ops).label) {
      case CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES:
        pack.workspace_bytes = read<std::size_t>(ptr);
        break;
      case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT: pack.count = read<std::int64_t>(ptr); break;
      case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR:
        pack.exponential_average_factor = read<double>(ptr);
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EPSILON: pack.epsilon = read<double>(ptr); break;
      default: pack.pointers[label] = ptr;
    }
  });
}

cudnnStatus_t cudnnGetFusedOpsVariantParamPackAttribute(cudnnFusedOpsVariantParamPack_t variants,
                                                        cudnnFusedOpsVariantParamLabel_t label,
                                                        void* ptr) {
  return guarded_legacy(__func__, [&] {
    const auto& pack = object(variants, "varPack");
    const auto& known = find_label(label, pack.ops);
    required(ptr, "ptr");
    switch (known.label) {
      case CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES:
        *static_cast<std::size_t*>(ptr) = pack.workspace_bytes;
        break;
      case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT:
        *static_cast<std::int64_t*>(ptr) = pack.count;
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR:
        *static_cast<double*>(ptr) = pack.exponential_average_factor;
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EPSILON: *static_cast<double*>(ptr) = pack.epsilon; break;
      default: {
        const auto* stored = find_in(pack.pointers, label);
        *static_cast<void**>(ptr) = stored != nullptr ? *stored : nullptr;
      }
    }
  });
}
