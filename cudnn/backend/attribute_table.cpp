#include "backend/attribute_table.hpp"

#include <array>
#include <bit>

#include "backend/record.hpp"

namespace ashlar::cudnn {

namespace {

constexpr std::size_t kMaxAttribute = 3000;  // all enumerators of attributes are below this
using RowsByName = std::array<const AttributeRow*, kMaxAttribute>;

const RowsByName& rows_by_name() {
  static const RowsByName once = [] {
    RowsByName rows_by_name{};
    for (const AttributeRow& row : attribute_rows()) rows_by_name.at(row.name) = &row;
    return rows_by_name;
  }();
  return once;
}

#define ASHLAR_DESCRIPTOR(name) "CUDNN_BACKEND_" #name "_DESCRIPTOR"
// Indexed by cudnnBackendDescriptorType_t.
constexpr std::array kDescriptorNames = {
    ASHLAR_DESCRIPTOR(POINTWISE),
    ASHLAR_DESCRIPTOR(CONVOLUTION),
    ASHLAR_DESCRIPTOR(ENGINE),
    ASHLAR_DESCRIPTOR(ENGINECFG),
    ASHLAR_DESCRIPTOR(ENGINEHEUR),
    ASHLAR_DESCRIPTOR(EXECUTION_PLAN),
    ASHLAR_DESCRIPTOR(INTERMEDIATE_INFO),
    ASHLAR_DESCRIPTOR(KNOB_CHOICE),
    ASHLAR_DESCRIPTOR(KNOB_INFO),
    ASHLAR_DESCRIPTOR(LAYOUT_INFO),
    ASHLAR_DESCRIPTOR(OPERATION_CONVOLUTION_FORWARD),
    ASHLAR_DESCRIPTOR(OPERATION_CONVOLUTION_BACKWARD_FILTER),
    ASHLAR_DESCRIPTOR(OPERATION_CONVOLUTION_BACKWARD_DATA),
    ASHLAR_DESCRIPTOR(OPERATION_POINTWISE),
    ASHLAR_DESCRIPTOR(OPERATION_GEN_STATS),
    ASHLAR_DESCRIPTOR(OPERATIONGRAPH),
    ASHLAR_DESCRIPTOR(VARIANT_PACK),
    ASHLAR_DESCRIPTOR(TENSOR),
    ASHLAR_DESCRIPTOR(MATMUL),
    ASHLAR_DESCRIPTOR(OPERATION_MATMUL),
    ASHLAR_DESCRIPTOR(OPERATION_BN_FINALIZE_STATISTICS),
    ASHLAR_DESCRIPTOR(REDUCTION),
    ASHLAR_DESCRIPTOR(OPERATION_REDUCTION),
    ASHLAR_DESCRIPTOR(OPERATION_BN_BWD_WEIGHTS),
    ASHLAR_DESCRIPTOR(RESAMPLE),
    ASHLAR_DESCRIPTOR(OPERATION_RESAMPLE_FWD),
    ASHLAR_DESCRIPTOR(OPERATION_RESAMPLE_BWD),
    ASHLAR_DESCRIPTOR(OPERATION_CONCAT),
    ASHLAR_DESCRIPTOR(OPERATION_SIGNAL),
    ASHLAR_DESCRIPTOR(OPERATION_NORM_FORWARD),
    ASHLAR_DESCRIPTOR(OPERATION_NORM_BACKWARD),
    ASHLAR_DESCRIPTOR(OPERATION_RESHAPE),
    ASHLAR_DESCRIPTOR(RNG),
    ASHLAR_DESCRIPTOR(OPERATION_RNG),
    ASHLAR_DESCRIPTOR(KERNEL_CACHE),
    ASHLAR_DESCRIPTOR(OPERATION_PAGED_CACHE_LOAD),
    ASHLAR_DESCRIPTOR(OPERATION_BLOCK_SCALE_QUANTIZE),
    ASHLAR_DESCRIPTOR(OPERATION_BLOCK_SCALE_DEQUANTIZE),
    ASHLAR_DESCRIPTOR(DEVICEPROP),
    ASHLAR_DESCRIPTOR(OPERATION_EXPAND_BAND_MATRIX),
    ASHLAR_DESCRIPTOR(OPERATION_CONTRACT_BAND_MATRIX),
    ASHLAR_DESCRIPTOR(OPERATION_SDPA_FWD),
    ASHLAR_DESCRIPTOR(OPERATION_MOE_GROUPED_MATMUL),
    ASHLAR_DESCRIPTOR(OPERATION_SDPA_BWD),
};
#undef ASHLAR_DESCRIPTOR

}  // namespace

const AttributeRow* find_attribute(std::int64_t name) {
  const auto number = static_cast<std::size_t>(name);
  return number < kMaxAttribute ? rows_by_name()[number] : nullptr;
}

const char* attribute_name(std::int64_t name) {
  const AttributeRow* row = find_attribute(name);
  return row != nullptr ? row->text : "an unknown attribute";
}

bool is_descriptor_type(std::int64_t type) {
  return type >= 0 && type < static_cast<std::int64_t>(kDescriptorNames.size());
}

const char* descriptor_type_name(cudnnBackendDescriptorType_t type) {
  return is_descriptor_type(type) ? kDescriptorNames[type] : "an unknown descriptor";
}

std::string descriptors_text(DescriptorTypes types) {
  if (std::popcount(types) != 1) return "an operation";
  const auto type = static_cast<cudnnBackendDescriptorType_t>(std::countr_zero(types));
  return std::string("a ") + descriptor_type_name(type);
}

}  // namespace ashlar::cudnn
