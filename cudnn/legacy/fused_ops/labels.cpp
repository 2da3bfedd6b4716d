#include "legacy/fused_ops/labels.hpp"

#include <array>
#include <string_view>

#include "core/failure.hpp"

namespace ashlar::cudnn {

namespace {

constexpr unsigned kConvStats = 1U << CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS;
constexpr unsigned kWgrad = 1U << CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD;
constexpr unsigned kTraining = 1U << CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING;
constexpr unsigned kInference = 1U << CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE;
constexpr unsigned kConvAct = 1U << CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION;
constexpr unsigned kMask = 1U << CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK;
constexpr unsigned kGradient = 1U << CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM;
constexpr unsigned kAll = 0x7FU;
constexpr unsigned kFinalize = kTraining | kInference;
constexpr unsigned kEquivalent = kConvStats | kWgrad | kFinalize | kConvAct | kMask;
constexpr unsigned kReadsX = kConvStats | kWgrad | kConvAct | kMask | kGradient;
constexpr unsigned kMakesY = kConvStats | kConvAct | kMask;
constexpr unsigned kStats = kConvStats | kTraining;
constexpr unsigned kAdds = kConvAct | kMask;

using enum ConstantKind;
#define ASHLAR_LABEL(label, ...) \
  { label, #label, __VA_ARGS__ }
constexpr std::array<ConstantLabel, 39> kConstants = {{
    ASHLAR_LABEL(CUDNN_PARAM_XDESC, tensor, kReadsX),
    ASHLAR_LABEL(CUDNN_PARAM_XDATA_PLACEHOLDER, placeholder, kReadsX),
    ASHLAR_LABEL(CUDNN_PARAM_BN_MODE, bn_mode, kAll),
    ASHLAR_LABEL(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, tensor, kEquivalent),
    ASHLAR_LABEL(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, placeholder, kEquivalent),
    ASHLAR_LABEL(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, placeholder, kEquivalent),
    ASHLAR_LABEL(CUDNN_PARAM_ACTIVATION_DESC, activation, kReadsX),
    ASHLAR_LABEL(CUDNN_PARAM_CONV_DESC, convolution, kConvStats | kWgrad | kConvAct),
    ASHLAR_LABEL(CUDNN_PARAM_WDESC, filter, kConvStats | kConvAct),
    ASHLAR_LABEL(CUDNN_PARAM_WDATA_PLACEHOLDER, placeholder, kConvStats | kConvAct),
    ASHLAR_LABEL(CUDNN_PARAM_DWDESC, filter, kWgrad),
    ASHLAR_LABEL(CUDNN_PARAM_DWDATA_PLACEHOLDER, placeholder, kWgrad),
    ASHLAR_LABEL(CUDNN_PARAM_YDESC, tensor, kMakesY),
    ASHLAR_LABEL(CUDNN_PARAM_YDATA_PLACEHOLDER, placeholder, kMakesY),
    ASHLAR_LABEL(CUDNN_PARAM_DYDESC, tensor, kWgrad | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_DYDATA_PLACEHOLDER, placeholder, kWgrad | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_YSTATS_DESC, tensor, kStats),
    ASHLAR_LABEL(CUDNN_PARAM_YSUM_PLACEHOLDER, placeholder, kStats),
    ASHLAR_LABEL(CUDNN_PARAM_YSQSUM_PLACEHOLDER, placeholder, kStats),
    ASHLAR_LABEL(CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, tensor, kFinalize | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_SCALE_PLACEHOLDER, placeholder, kFinalize | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_BIAS_PLACEHOLDER, placeholder, kFinalize | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, placeholder, kTraining | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, placeholder, kTraining | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, placeholder, kFinalize),
    ASHLAR_LABEL(CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, placeholder, kFinalize),
    ASHLAR_LABEL(CUDNN_PARAM_ZDESC, tensor, kAdds),
    ASHLAR_LABEL(CUDNN_PARAM_ZDATA_PLACEHOLDER, placeholder, kAdds),
    ASHLAR_LABEL(CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC, tensor, kAdds),
    ASHLAR_LABEL(CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER, placeholder, kAdds),
    ASHLAR_LABEL(CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER, placeholder, kAdds),
    ASHLAR_LABEL(CUDNN_PARAM_ACTIVATION_BITMASK_DESC, tensor, kMask | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, placeholder, kMask | kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_DXDESC, tensor, kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_DXDATA_PLACEHOLDER, placeholder, kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_DZDESC, tensor, kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_DZDATA_PLACEHOLDER, placeholder, kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_DSCALE_PLACEHOLDER, placeholder, kGradient),
    ASHLAR_LABEL(CUDNN_PARAM_BN_DBIAS_PLACEHOLDER, placeholder, kGradient),
}};
constexpr std::array<VariantLabel, 28> kVariants = {{
    ASHLAR_LABEL(CUDNN_PTR_XDATA, "x", kReadsX),
    ASHLAR_LABEL(CUDNN_PTR_BN_EQSCALE, "eq_scale", kEquivalent),
    ASHLAR_LABEL(CUDNN_PTR_BN_EQBIAS, "eq_bias", kEquivalent),
    ASHLAR_LABEL(CUDNN_PTR_WDATA, "w", kConvStats | kConvAct),
    ASHLAR_LABEL(CUDNN_PTR_DWDATA, "dw", kWgrad),
    ASHLAR_LABEL(CUDNN_PTR_YDATA, "y", kMakesY),
    ASHLAR_LABEL(CUDNN_PTR_DYDATA, "dy", kWgrad | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_YSUM, "y_sum", kStats),
    ASHLAR_LABEL(CUDNN_PTR_YSQSUM, "y_sq_sum", kStats),
    ASHLAR_LABEL(CUDNN_PTR_WORKSPACE, nullptr, kAll),
    ASHLAR_LABEL(CUDNN_PTR_BN_SCALE, "scale", kFinalize | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_BIAS, "bias", kFinalize | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_SAVED_MEAN, "saved_mean", kTraining | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_SAVED_INVSTD, "saved_inv_std", kTraining | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_RUNNING_MEAN, "running_mean", kFinalize),
    ASHLAR_LABEL(CUDNN_PTR_BN_RUNNING_VAR, "running_var", kFinalize),
    ASHLAR_LABEL(CUDNN_PTR_ZDATA, "z", kAdds),
    ASHLAR_LABEL(CUDNN_PTR_BN_Z_EQSCALE, "z_eq_scale", kAdds),
    ASHLAR_LABEL(CUDNN_PTR_BN_Z_EQBIAS, "z_eq_bias", kAdds),
    ASHLAR_LABEL(CUDNN_PTR_ACTIVATION_BITMASK, "bitmask", kMask | kGradient),
    ASHLAR_LABEL(CUDNN_PTR_DXDATA, "dx", kGradient),
    ASHLAR_LABEL(CUDNN_PTR_DZDATA, "dz", kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_DSCALE, "dscale", kGradient),
    ASHLAR_LABEL(CUDNN_PTR_BN_DBIAS, "dbias", kGradient),
    ASHLAR_LABEL(CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, nullptr, kAll),
    ASHLAR_LABEL(CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT, "count", kTraining),
    ASHLAR_LABEL(CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR, "momentum", kTraining),
    ASHLAR_LABEL(CUDNN_SCALAR_DOUBLE_BN_EPSILON, "epsilon", kFinalize),
}};
#undef ASHLAR_LABEL

template <class Rows, class Label>
const auto& find(const Rows& rows, Label label, cudnnFusedOps_t ops) {
  for (const auto& row : rows)
    if (row.label == label) {
      if ((row.fusions >> ops & 1U) == 0)
        fail(CUDNN_STATUS_BAD_PARAM, "paramLabel: got {}, expected a label of fused op {}",
             row.name, static_cast<int>(ops));
      return row;
    }
  fail(CUDNN_STATUS_BAD_PARAM, "paramLabel: got {}, expected a parameter label",
       static_cast<int>(label));
}

}  // namespace

const ConstantLabel& find_label(cudnnFusedOpsConstParamLabel_t label, cudnnFusedOps_t ops) {
  return find(kConstants, label, ops);
}
const VariantLabel& find_label(cudnnFusedOpsVariantParamLabel_t label, cudnnFusedOps_t ops) {
  return find(kVariants, label, ops);
}

const char* name_of(cudnnFusedOpsConstParamLabel_t label) {
  for (const ConstantLabel& row : kConstants)
    if (row.label == label) return row.name;
  return "no label";
}

const VariantLabel* find_label_of(const char* tensor) {
  for (const VariantLabel& row : kVariants)
    if (row.tensor != nullptr && std::string_view(row.tensor) == tensor) return &row;
  return nullptr;
}

}  // namespace ashlar::cudnn
