#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Gather&, const Operands&) {}

template <class Operands>
void evaluate(const Scatter&, const Operands&) {}

ASHLAR_REFERENCE(Gather);
ASHLAR_REFERENCE(Scatter);

}  // namespace ashlar::reference
