// The reference loop nests, one per operation. Each is a template over the operands: MemoryOperands
// (double, the last-resort engine) or DenseOperands (values with error bounds, the oracle). An
// operands object provides
//   has_input(i), input(i), has_output(i), output(i)  views with dims(), dtype(), load(index),
//                                                     store(index, x); line(index, axis)[i] loads
//                                                     the element i further along that axis
//   integer(i)                                        a single 64-bit integer
//   compute()                                         the node's compute type
// A complex tensor has an additional last axis for its two parts, and complex() is true.
// load() broadcasts: on an axis of extent 1 every coordinate maps to 0.
#pragma once

#include <ashlar/ops.hpp>

#include "reference/accumulator.hpp"
#include "reference/dense_operands.hpp"
#include "reference/loops.hpp"
#include "reference/memory_operands.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const ConvForward& op, const Operands& operands);
template <class Operands>
void evaluate(const ConvBackwardData& op, const Operands& operands);
template <class Operands>
void evaluate(const ConvBackwardFilter& op, const Operands& operands);
template <class Operands>
void evaluate(const CausalConvForward& op, const Operands& operands);
template <class Operands>
void evaluate(const CausalConvBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const Im2Col& op, const Operands& operands);
template <class Operands>
void evaluate(const Matmul& op, const Operands& operands);
template <class Operands>
void evaluate(const MoeGroupedMatmul& op, const Operands& operands);
template <class Operands>
void evaluate(const MoeGroupedMatmulBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const Pointwise& op, const Operands& operands);
template <class Operands>
void evaluate(const Reduction& op, const Operands& operands);
template <class Operands>
void evaluate(const ResampleForward& op, const Operands& operands);
template <class Operands>
void evaluate(const ResampleBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const GridGeneratorForward& op, const Operands& operands);
template <class Operands>
void evaluate(const GridGeneratorBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const GridSampleForward& op, const Operands& operands);
template <class Operands>
void evaluate(const GridSampleBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const NormForward& op, const Operands& operands);
template <class Operands>
void evaluate(const NormBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const GenStats& op, const Operands& operands);
template <class Operands>
void evaluate(const BnFinalize& op, const Operands& operands);
template <class Operands>
void evaluate(const BnBackwardWeights& op, const Operands& operands);
template <class Operands>
void evaluate(const LrnForward& op, const Operands& operands);
template <class Operands>
void evaluate(const LrnBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const DivisiveNormForward& op, const Operands& operands);
template <class Operands>
void evaluate(const DivisiveNormBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const SoftmaxForward& op, const Operands& operands);
template <class Operands>
void evaluate(const SoftmaxBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const AttentionForward& op, const Operands& operands);
template <class Operands>
void evaluate(const AttentionBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const MultiHeadAttentionForward& op, const Operands& operands);
template <class Operands>
void evaluate(const MultiHeadAttentionBackwardData& op, const Operands& operands);
template <class Operands>
void evaluate(const MultiHeadAttentionBackwardWeights& op, const Operands& operands);
template <class Operands>
void evaluate(const PagedCacheLoad& op, const Operands& operands);
template <class Operands>
void evaluate(const ExpandBandMatrix& op, const Operands& operands);
template <class Operands>
void evaluate(const ContractBandMatrix& op, const Operands& operands);
template <class Operands>
void evaluate(const RnnForward& op, const Operands& operands);
template <class Operands>
void evaluate(const RnnBackwardData& op, const Operands& operands);
template <class Operands>
void evaluate(const RnnBackwardWeights& op, const Operands& operands);
template <class Operands>
void evaluate(const CtcLoss& op, const Operands& operands);
template <class Operands>
void evaluate(const Rng& op, const Operands& operands);
template <class Operands>
void evaluate(const DropoutForward& op, const Operands& operands);
template <class Operands>
void evaluate(const DropoutBackward& op, const Operands& operands);
template <class Operands>
void evaluate(const BlockScaleQuantize& op, const Operands& operands);
template <class Operands>
void evaluate(const BlockScaleDequantize& op, const Operands& operands);
template <class Operands>
void evaluate(const Reshape& op, const Operands& operands);
template <class Operands>
void evaluate(const Transpose& op, const Operands& operands);
template <class Operands>
void evaluate(const Slice& op, const Operands& operands);
template <class Operands>
void evaluate(const Concat& op, const Operands& operands);
template <class Operands>
void evaluate(const TensorTransform& op, const Operands& operands);

// Integer compute types truncate as C does, and define division by zero as 0.
template <class Scalar>
Scalar quotient(DType compute, Scalar a, Scalar b) {
  if (is_floating(compute)) return a / b;
  return truncated_quotient(a, b);
}

// An empty attribute means `missing` on every axis.
inline std::int64_t per_axis(const Dims& values, int axis, std::int64_t missing) {
  return values.empty() ? missing : values[axis];
}

}  // namespace ashlar::reference

// Instantiates the loop nest of an operation for all kinds of operands.
#define ASHLAR_REFERENCE_INSTANTIATE(OpType)                                    \
  template void evaluate(const OpType&, const MemoryOperands&);                 \
  template void evaluate(const OpType&, const DenseOperands<Arithmetic::f32>&); \
  template void evaluate(const OpType&, const DenseOperands<Arithmetic::f64>&); \
  template void evaluate(const OpType&, const DenseOperands<Arithmetic::integer>&)
