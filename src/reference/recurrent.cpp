#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const RnnForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(RnnForward);

template <class Operands>
void evaluate(const RnnBackwardData&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(RnnBackwardData);

template <class Operands>
void evaluate(const RnnBackwardWeights&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(RnnBackwardWeights);

}  // namespace ashlar::reference
