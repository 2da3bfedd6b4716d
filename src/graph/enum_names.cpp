// The names of all enumerators.
#include "graph/enum_names.hpp"

#include <array>

namespace ashlar {

namespace {

using Name = std::string_view;

constexpr std::array<Name, 2> kConvModes = {"cross_correlation", "convolution"};
constexpr std::array<Name, kPointwiseModeCount> kPointwiseModes = {
    "add",         "mul",          "min",           "max",
    "add_square",  "div",          "mod",           "pow",
    "sub",         "atan2",        "sqrt",          "abs",
    "ceil",        "cos",          "exp",           "floor",
    "log",         "neg",          "rsqrt",         "sin",
    "tan",         "erf",          "identity",      "reciprocal",
    "relu_fwd",    "tanh_fwd",     "sigmoid_fwd",   "elu_fwd",
    "gelu_fwd",    "softplus_fwd", "swish_fwd",     "gelu_approx_tanh_fwd",
    "relu_bwd",    "tanh_bwd",     "sigmoid_bwd",   "elu_bwd",
    "gelu_bwd",    "softplus_bwd", "swish_bwd",     "gelu_approx_tanh_bwd",
    "cmp_eq",      "cmp_neq",      "cmp_gt",        "cmp_ge",
    "cmp_lt",      "cmp_le",       "logical_and",   "logical_or",
    "logical_not", "gen_index",    "binary_select", "trunc",
    "round",       "sign",         "log1p",         "expm1",
    "bit_and",     "bit_or",       "bit_xor",       "bit_not",
    "shift_left",  "shift_right"};
static_assert(static_cast<int>(PointwiseMode::shift_right) + 1 == kPointwiseModeCount);
constexpr std::array<Name, 9> kReductionModes = {"add", "mul",   "min",   "max",         "amax",
                                                 "avg", "norm1", "norm2", "mul_no_zeros"};
constexpr std::array<Name, 5> kResampleModes = {"nearest", "bilinear", "avgpool_include_padding",
                                                "avgpool_exclude_padding", "maxpool"};
constexpr std::array<Name, 3> kPaddingModes = {"zero", "neg_inf", "edge"};
constexpr std::array<Name, 6> kNormModes = {"layer", "instance", "batch",
                                            "group", "rms",      "ada_layer"};
constexpr std::array<Name, 2> kNormPhases = {"inference", "training"};
constexpr std::array<Name, 2> kMaskAlignments = {"top_left", "bottom_right"};
constexpr std::array<Name, 3> kRngDistributions = {"bernoulli", "uniform", "normal"};
constexpr std::array<Name, 2> kCausalConvActivations = {"identity", "silu"};
constexpr std::array<Name, 3> kMoeModes = {"none", "gather", "scatter"};
constexpr std::array<Name, 2> kGridSampleModes = {"bilinear", "nearest"};
constexpr std::array<Name, 3> kGridPaddings = {"zeros", "border", "reflection"};
constexpr std::array<Name, 4> kRnnModes = {"relu", "tanh", "lstm", "gru"};
constexpr std::array<Name, 4> kRnnBiass = {"none", "input", "recurrent", "both"};
constexpr std::array<Name, 2> kRnnInputs = {"linear", "skip"};
constexpr std::array<Name, 2> kRnnLayouts = {"padded", "packed"};
constexpr std::array<Name, 2> kCtcInputs = {"logits", "probabilities"};
constexpr std::array<Name, 2> kCtcPaddings = {"zero", "skip"};
constexpr std::array<Name, 2> kScaleLayouts = {"linear", "f8_128x4"};
constexpr std::array<Name, 2> kIndexModes = {"slices", "elements"};
constexpr std::array<Name, 2> kOutOfRange = {"zero", "clamp"};
constexpr std::array<Name, 5> kScatterModes = {"set", "add", "mul", "min", "max"};
constexpr std::array<Name, 4> kPadModes = {"constant", "reflect", "edge", "circular"};
constexpr std::array<Name, 5> kScanModes = {"add", "mul", "min", "max", "logsumexp"};
constexpr std::array<Name, 2> kRopePairs = {"half", "interleaved"};
constexpr std::array<Name, 5> kTensorKinds = {"input", "output", "intermediate", "scalar",
                                              "constant"};

}  // namespace

std::span<const Name> enum_names(ConvMode) { return kConvModes; }
std::span<const Name> enum_names(PointwiseMode) { return kPointwiseModes; }
std::span<const Name> enum_names(ReductionMode) { return kReductionModes; }
std::span<const Name> enum_names(ResampleMode) { return kResampleModes; }
std::span<const Name> enum_names(PaddingMode) { return kPaddingModes; }
std::span<const Name> enum_names(NormMode) { return kNormModes; }
std::span<const Name> enum_names(NormPhase) { return kNormPhases; }
std::span<const Name> enum_names(MaskAlignment) { return kMaskAlignments; }
std::span<const Name> enum_names(RngDistribution) { return kRngDistributions; }
std::span<const Name> enum_names(CausalConvActivation) { return kCausalConvActivations; }
std::span<const Name> enum_names(MoeMode) { return kMoeModes; }
std::span<const Name> enum_names(GridSampleMode) { return kGridSampleModes; }
std::span<const Name> enum_names(GridPadding) { return kGridPaddings; }
std::span<const Name> enum_names(RnnMode) { return kRnnModes; }
std::span<const Name> enum_names(RnnBias) { return kRnnBiass; }
std::span<const Name> enum_names(RnnInput) { return kRnnInputs; }
std::span<const Name> enum_names(RnnLayout) { return kRnnLayouts; }
std::span<const Name> enum_names(CtcInput) { return kCtcInputs; }
std::span<const Name> enum_names(CtcPadding) { return kCtcPaddings; }
std::span<const Name> enum_names(ScaleLayout) { return kScaleLayouts; }
std::span<const Name> enum_names(IndexMode) { return kIndexModes; }
std::span<const Name> enum_names(OutOfRange) { return kOutOfRange; }
std::span<const Name> enum_names(ScatterMode) { return kScatterModes; }
std::span<const Name> enum_names(PadMode) { return kPadModes; }
std::span<const Name> enum_names(ScanMode) { return kScanModes; }
std::span<const Name> enum_names(RopePairs) { return kRopePairs; }
std::span<const Name> enum_names(TensorKind) { return kTensorKinds; }

bool parse_dtype(Name name, DType& dtype) {
  for (DType candidate : kAllDTypes) {
    if (to_string(candidate) != name) continue;
    dtype = candidate;
    return true;
  }
  return false;
}

}  // namespace ashlar
