#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const CtcLoss&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(CtcLoss);

}  // namespace ashlar::reference
