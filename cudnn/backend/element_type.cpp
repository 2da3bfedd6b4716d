#include "backend/element_type.hpp"

#include <array>

#include "backend/attribute_table.hpp"

namespace ashlar::cudnn {

namespace {

bool is_anything(std::int64_t) { return true; }

// For an enumeration without gaps.
template <std::int64_t kLast>
bool is_up_to(std::int64_t value) {
  return value >= 0 && value <= kLast;
}

bool is_pointwise_mode(std::int64_t value) {
  const auto is_within = [value](std::int64_t first, std::int64_t last) {
    return value >= first && value <= last;
  };
  return is_within(CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_ATAN2) ||
         is_within(CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD) ||
         is_within(CUDNN_POINTWISE_RELU_BWD, CUDNN_POINTWISE_GELU_APPROX_TANH_BWD) ||
         is_within(CUDNN_POINTWISE_CMP_EQ, CUDNN_POINTWISE_CMP_LE) ||
         is_within(CUDNN_POINTWISE_LOGICAL_AND, CUDNN_POINTWISE_LOGICAL_NOT) ||
         value == CUDNN_POINTWISE_GEN_INDEX || value == CUDNN_POINTWISE_BINARY_SELECT;
}

bool is_attribute_name(std::int64_t value) { return find_attribute(value) != nullptr; }

struct Row {
  const char* name;
  std::size_t size;
  bool (*is_value)(std::int64_t) = is_anything;
};
#define ASHLAR_TYPE(name, ...) \
  Row { "CUDNN_TYPE_" #name, __VA_ARGS__ }
constexpr std::size_t kEnum = sizeof(int);
// Indexed by cudnnBackendAttributeType_t.
constexpr std::array kElementTypes = {
    ASHLAR_TYPE(HANDLE, sizeof(void*)),
    ASHLAR_TYPE(DATA_TYPE, kEnum, is_up_to<CUDNN_DATA_COMPLEX_FP64>),
    ASHLAR_TYPE(BOOLEAN, sizeof(bool)),
    ASHLAR_TYPE(INT64, sizeof(std::int64_t)),
    ASHLAR_TYPE(FLOAT, sizeof(float)),
    ASHLAR_TYPE(DOUBLE, sizeof(double)),
    ASHLAR_TYPE(VOID_PTR, sizeof(void*)),
    ASHLAR_TYPE(CONVOLUTION_MODE, kEnum, is_up_to<CUDNN_CROSS_CORRELATION>),
    ASHLAR_TYPE(HEUR_MODE, kEnum, is_up_to<CUDNN_HEUR_MODE_A>),
    ASHLAR_TYPE(KNOB_TYPE, kEnum, is_up_to<CUDNN_KNOB_TYPE_COUNTS - 1>),
    ASHLAR_TYPE(NAN_PROPOGATION, kEnum, is_up_to<CUDNN_PROPAGATE_NAN>),
    ASHLAR_TYPE(NUMERICAL_NOTE, kEnum, is_up_to<CUDNN_NUMERICAL_NOTE_TYPE_COUNT - 1>),
    ASHLAR_TYPE(LAYOUT_TYPE, kEnum, is_up_to<CUDNN_LAYOUT_TYPE_COUNT - 1>),
    ASHLAR_TYPE(ATTRIB_NAME, kEnum, is_attribute_name),
    ASHLAR_TYPE(POINTWISE_MODE, kEnum, is_pointwise_mode),
    ASHLAR_TYPE(BACKEND_DESCRIPTOR, sizeof(void*)),
    ASHLAR_TYPE(GENSTATS_MODE, kEnum, is_up_to<CUDNN_GENSTATS_SUM_SQSUM>),
    ASHLAR_TYPE(BN_FINALIZE_STATS_MODE, kEnum, is_up_to<CUDNN_BN_FINALIZE_STATISTICS_INFERENCE>),
    ASHLAR_TYPE(REDUCTION_OPERATOR_TYPE, kEnum, is_up_to<CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS>),
    ASHLAR_TYPE(BEHAVIOR_NOTE, kEnum, is_up_to<CUDNN_BEHAVIOR_NOTE_TYPE_COUNT - 1>),
    ASHLAR_TYPE(TENSOR_REORDERING_MODE, kEnum, is_up_to<CUDNN_TENSOR_REORDERING_F8_128x4>),
    ASHLAR_TYPE(RESAMPLE_MODE, kEnum, is_up_to<CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING>),
    ASHLAR_TYPE(PADDING_MODE, kEnum, is_up_to<CUDNN_EDGE_VAL_PAD>),
    ASHLAR_TYPE(INT32, sizeof(std::int32_t)),
    ASHLAR_TYPE(CHAR, sizeof(char)),
    ASHLAR_TYPE(SIGNAL_MODE, kEnum, is_up_to<CUDNN_SIGNAL_WAIT>),
    ASHLAR_TYPE(FRACTION, sizeof(cudnnFraction_t)),
    ASHLAR_TYPE(NORM_MODE, kEnum, is_up_to<CUDNN_ADA_LAYER_NORM>),
    ASHLAR_TYPE(NORM_FWD_PHASE, kEnum, is_up_to<CUDNN_NORM_FWD_TRAINING>),
    ASHLAR_TYPE(RNG_DISTRIBUTION, kEnum, is_up_to<CUDNN_RNG_DISTRIBUTION_NORMAL>),
    ASHLAR_TYPE(MOE_GROUPED_MATMUL_MODE, kEnum, is_up_to<CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER>),
};
#undef ASHLAR_TYPE

bool is_known(std::int64_t type) {
  return type >= 0 && type < static_cast<std::int64_t>(kElementTypes.size());
}

}  // namespace

const char* element_type_name(std::int64_t type) {
  return is_known(type) ? kElementTypes[type].name : "an unknown attribute type";
}

std::size_t element_size(std::int64_t type) {
  return is_known(type) ? kElementTypes[type].size : 0;
}

bool is_value_of(std::int64_t type, std::int64_t value) {
  return is_known(type) && kElementTypes[type].is_value(value);
}

}  // namespace ashlar::cudnn
