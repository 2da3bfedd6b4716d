#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const MultiHeadAttentionForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionForward);

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardData&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionBackwardData);

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardWeights&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(MultiHeadAttentionBackwardWeights);

}  // namespace ashlar::reference
