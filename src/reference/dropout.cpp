#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const DropoutForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(DropoutForward);

template <class Operands>
void evaluate(const DropoutBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(DropoutBackward);

}  // namespace ashlar::reference
