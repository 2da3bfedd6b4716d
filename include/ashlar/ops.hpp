// The operations: one plain struct per kind, with its attributes and its operand slots.
//
// `In` and `Out` enumerate the slots of Node::inputs and Node::outputs (ops/slots.hpp). Every
// struct lists its operands and its attributes once; JSON, text, hashing and equality follow from
// these lists. docs/ops/ defines each operation.
#pragma once

#include <ashlar/ops/attention.hpp>
#include <ashlar/ops/cache.hpp>
#include <ashlar/ops/convolution.hpp>
#include <ashlar/ops/ctc.hpp>
#include <ashlar/ops/indexing.hpp>
#include <ashlar/ops/local_norm.hpp>
#include <ashlar/ops/loss.hpp>
#include <ashlar/ops/matmul.hpp>
#include <ashlar/ops/mixture.hpp>
#include <ashlar/ops/movement.hpp>
#include <ashlar/ops/multi_head_attention.hpp>
#include <ashlar/ops/norm.hpp>
#include <ashlar/ops/padding.hpp>
#include <ashlar/ops/pointwise.hpp>
#include <ashlar/ops/quantization.hpp>
#include <ashlar/ops/random.hpp>
#include <ashlar/ops/recurrent.hpp>
#include <ashlar/ops/reduction.hpp>
#include <ashlar/ops/resample.hpp>
#include <ashlar/ops/rope.hpp>
#include <ashlar/ops/scan.hpp>
#include <ashlar/ops/softmax.hpp>
#include <ashlar/ops/spatial_transformer.hpp>
#include <ashlar/ops/top_k.hpp>
#include <concepts>
#include <variant>

namespace ashlar {

using Op = std::variant<
    ConvForward, ConvBackwardData, ConvBackwardFilter, CausalConvForward, CausalConvBackward,
    Im2Col, Matmul, MoeGroupedMatmul, MoeGroupedMatmulBackward, Pointwise, Reduction,
    ResampleForward, ResampleBackward, GridGeneratorForward, GridGeneratorBackward,
    GridSampleForward, GridSampleBackward, NormForward, NormBackward, GenStats, BnFinalize,
    BnBackwardWeights, LrnForward, LrnBackward, DivisiveNormForward, DivisiveNormBackward,
    SoftmaxForward, SoftmaxBackward, AttentionForward, AttentionBackward, MultiHeadAttentionForward,
    MultiHeadAttentionBackwardData, MultiHeadAttentionBackwardWeights, PagedCacheLoad,
    ExpandBandMatrix, ContractBandMatrix, RnnForward, RnnBackwardData, RnnBackwardWeights, CtcLoss,
    Rng, DropoutForward, DropoutBackward, BlockScaleQuantize, BlockScaleDequantize, Reshape,
    Transpose, Slice, Concat, TensorTransform, Gather, Scatter, Pad, PadBackward, Scan, TopK,
    CrossEntropyForward, CrossEntropyBackward, Rope>;

// One of the structs that Op holds.
template <class O>
concept Operation = std::constructible_from<Op, O> && requires {
  typename O::In;
  typename O::Out;
};

}  // namespace ashlar
