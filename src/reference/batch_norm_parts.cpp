#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const GenStats&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(GenStats);

template <class Operands>
void evaluate(const BnFinalize&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(BnFinalize);

template <class Operands>
void evaluate(const BnBackwardWeights&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(BnBackwardWeights);

}  // namespace ashlar::reference
