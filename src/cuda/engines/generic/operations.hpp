// Operations of the generic engine: one describe() each, in the file of its family, which names the
// kernel file, sets its constants and arguments, and counts units and passes.
#pragma once

#include <concepts>

#include "cuda/engines/generic/generic_kernel.hpp"

namespace ashlar::cuda {

// convolution.cpp
void describe(const ConvForward& op, GenericKernel& kernel);
void describe(const ConvBackwardData& op, GenericKernel& kernel);
void describe(const ConvBackwardFilter& op, GenericKernel& kernel);
void describe(const CausalConvForward& op, GenericKernel& kernel);
void describe(const CausalConvBackward& op, GenericKernel& kernel);
void describe(const Im2Col& op, GenericKernel& kernel);
// dense.cpp
void describe(const Matmul& op, GenericKernel& kernel);
void describe(const MoeGroupedMatmul& op, GenericKernel& kernel);
void describe(const MoeGroupedMatmulBackward& op, GenericKernel& kernel);
void describe(const Reduction& op, GenericKernel& kernel);
// spatial.cpp
void describe(const ResampleForward& op, GenericKernel& kernel);
void describe(const ResampleBackward& op, GenericKernel& kernel);
void describe(const GridGeneratorForward& op, GenericKernel& kernel);
void describe(const GridGeneratorBackward& op, GenericKernel& kernel);
void describe(const GridSampleForward& op, GenericKernel& kernel);
void describe(const GridSampleBackward& op, GenericKernel& kernel);
void describe(const LrnForward& op, GenericKernel& kernel);
void describe(const LrnBackward& op, GenericKernel& kernel);
void describe(const DivisiveNormForward& op, GenericKernel& kernel);
void describe(const DivisiveNormBackward& op, GenericKernel& kernel);
// random_and_scale.cpp
void describe(const Rng& op, GenericKernel& kernel);
void describe(const DropoutForward& op, GenericKernel& kernel);
void describe(const DropoutBackward& op, GenericKernel& kernel);
void describe(const BlockScaleQuantize& op, GenericKernel& kernel);
void describe(const BlockScaleDequantize& op, GenericKernel& kernel);
// indexing.cpp
void describe(const Gather& op, GenericKernel& kernel);
void describe(const Scatter& op, GenericKernel& kernel);
// movement.cpp
void describe(const PagedCacheLoad& op, GenericKernel& kernel);
void describe(const ExpandBandMatrix& op, GenericKernel& kernel);
void describe(const ContractBandMatrix& op, GenericKernel& kernel);
void describe(const Reshape& op, GenericKernel& kernel);
void describe(const Transpose& op, GenericKernel& kernel);
void describe(const Slice& op, GenericKernel& kernel);
void describe(const Concat& op, GenericKernel& kernel);
void describe(const TensorTransform& op, GenericKernel& kernel);
void describe(const Pad& op, GenericKernel& kernel);
void describe(const PadBackward& op, GenericKernel& kernel);

// norm.cpp
void describe(const NormForward& op, GenericKernel& kernel);
void describe(const NormBackward& op, GenericKernel& kernel);
void describe(const GenStats& op, GenericKernel& kernel);
void describe(const BnFinalize& op, GenericKernel& kernel);
void describe(const BnBackwardWeights& op, GenericKernel& kernel);
void describe(const SoftmaxForward& op, GenericKernel& kernel);
void describe(const SoftmaxBackward& op, GenericKernel& kernel);
// losses.cpp
void describe(const CrossEntropyForward& op, GenericKernel& kernel);
void describe(const CrossEntropyBackward& op, GenericKernel& kernel);
// rope.cpp
void describe(const Rope& op, GenericKernel& kernel);
// lines.cpp
void describe(const Scan& op, GenericKernel& kernel);
void describe(const TopK& op, GenericKernel& kernel);
// attention.cpp
void describe(const AttentionForward& op, GenericKernel& kernel);
void describe(const AttentionBackward& op, GenericKernel& kernel);
// multi_head_attention.cpp
void describe(const MultiHeadAttentionForward& op, GenericKernel& kernel);
void describe(const MultiHeadAttentionBackwardData& op, GenericKernel& kernel);
void describe(const MultiHeadAttentionBackwardWeights& op, GenericKernel& kernel);
// sequences.cpp
void describe(const RnnForward& op, GenericKernel& kernel);
void describe(const RnnBackwardData& op, GenericKernel& kernel);
void describe(const RnnBackwardWeights& op, GenericKernel& kernel);
void describe(const CtcLoss& op, GenericKernel& kernel);

template <class OpType>
concept Described = requires(const OpType& op, GenericKernel& kernel) {
  { describe(op, kernel) } -> std::same_as<void>;
};

}  // namespace ashlar::cuda
