// Which fusions each operation allows.
#include "plan/fusion_rules.hpp"

namespace ashlar {

namespace {

// Inputs that may have a fused pointwise prologue, by operation.
struct FusibleInputs {
  std::vector<int> operator()(const ConvForward&) const { return {ConvForward::x, ConvForward::w}; }
  std::vector<int> operator()(const ConvBackwardData&) const {
    return {ConvBackwardData::dy, ConvBackwardData::w};
  }
  std::vector<int> operator()(const ConvBackwardFilter&) const {
    return {ConvBackwardFilter::x, ConvBackwardFilter::dy};
  }
  std::vector<int> operator()(const Matmul&) const { return {Matmul::a, Matmul::b}; }
  std::vector<int> operator()(const Reduction&) const { return {Reduction::x}; }
  std::vector<int> operator()(const ResampleForward&) const { return {ResampleForward::x}; }
  std::vector<int> operator()(const ResampleBackward&) const { return {ResampleBackward::dy}; }
  std::vector<int> operator()(const NormForward&) const { return {NormForward::x}; }
  std::vector<int> operator()(const NormBackward&) const {
    return {NormBackward::x, NormBackward::dy};
  }
  std::vector<int> operator()(const GenStats&) const { return {GenStats::x}; }
  std::vector<int> operator()(const BnBackwardWeights&) const {
    return {BnBackwardWeights::x, BnBackwardWeights::dy};
  }
  std::vector<int> operator()(const LrnForward&) const { return {LrnForward::x}; }
  std::vector<int> operator()(const LrnBackward&) const {
    return {LrnBackward::x, LrnBackward::dy};
  }
  std::vector<int> operator()(const DivisiveNormForward&) const { return {DivisiveNormForward::x}; }
  std::vector<int> operator()(const DivisiveNormBackward&) const {
    return {DivisiveNormBackward::x, DivisiveNormBackward::dy};
  }
  std::vector<int> operator()(const SoftmaxForward&) const { return {SoftmaxForward::x}; }
  std::vector<int> operator()(const SoftmaxBackward&) const {
    return {SoftmaxBackward::y, SoftmaxBackward::dy};
  }
  std::vector<int> operator()(const BlockScaleQuantize&) const { return {BlockScaleQuantize::x}; }
  std::vector<int> operator()(const BlockScaleDequantize&) const {
    return {BlockScaleDequantize::x, BlockScaleDequantize::scale, BlockScaleDequantize::zero_point};
  }
  std::vector<int> operator()(const AttentionForward&) const {
    return {AttentionForward::q, AttentionForward::k, AttentionForward::v};
  }
  std::vector<int> operator()(const CtcLoss&) const { return {CtcLoss::x}; }
  std::vector<int> operator()(const Im2Col&) const { return {Im2Col::x}; }
  std::vector<int> operator()(const TensorTransform&) const { return {TensorTransform::x}; }
  std::vector<int> operator()(const MoeGroupedMatmul&) const {
    return {MoeGroupedMatmul::token, MoeGroupedMatmul::weight};
  }
  std::vector<int> operator()(const MoeGroupedMatmulBackward&) const {
    return {MoeGroupedMatmulBackward::doutput, MoeGroupedMatmulBackward::token};
  }
  std::vector<int> operator()(const PagedCacheLoad&) const { return {PagedCacheLoad::container}; }
  std::vector<int> operator()(const ExpandBandMatrix&) const { return {ExpandBandMatrix::x}; }
  std::vector<int> operator()(const ContractBandMatrix&) const { return {ContractBandMatrix::x}; }
  std::vector<int> operator()(const CausalConvForward&) const { return {CausalConvForward::x}; }
  std::vector<int> operator()(const CausalConvBackward&) const {
    return {CausalConvBackward::x, CausalConvBackward::dy};
  }
  std::vector<int> operator()(const DropoutForward&) const { return {DropoutForward::x}; }
  std::vector<int> operator()(const DropoutBackward&) const { return {DropoutBackward::dy}; }
  template <class Other>
  std::vector<int> operator()(const Other&) const {
    return {};
  }
};

template <class... Ops>
bool is_one_of(const Op& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

}  // namespace

std::vector<int> fusible_inputs(const Op& op) { return std::visit(FusibleInputs{}, op); }

bool reads_inputs_often(const Op& op) {
  return is_one_of<ConvForward, ConvBackwardData, ConvBackwardFilter, AttentionForward,
                   ResampleForward, Im2Col, CtcLoss, LrnForward, LrnBackward, DivisiveNormForward,
                   DivisiveNormBackward, MoeGroupedMatmul, MoeGroupedMatmulBackward>(op);
}

bool may_draw(const Op& op) { return is_one_of<NormForward, SoftmaxForward>(op); }

bool may_dequantize(const Op& op) { return is_one_of<Matmul, MoeGroupedMatmul>(op); }

bool may_store_input(const Op& op, int slot) {
  if (const auto* norm = std::get_if<NormForward>(&op))
    return slot == NormForward::x &&
           (norm->mode == NormMode::layer || norm->mode == NormMode::rms ||
            norm->mode == NormMode::ada_layer);
  return std::holds_alternative<NormBackward>(op) && slot == NormBackward::dy;
}

}  // namespace ashlar
