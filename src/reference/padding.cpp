#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Pad&, const Operands&) {}

template <class Operands>
void evaluate(const PadBackward&, const Operands&) {}

ASHLAR_REFERENCE(Pad);
ASHLAR_REFERENCE(PadBackward);

}  // namespace ashlar::reference
