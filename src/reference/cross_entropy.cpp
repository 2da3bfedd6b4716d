#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const CrossEntropyForward&, const Operands&) {}

template <class Operands>
void evaluate(const CrossEntropyBackward&, const Operands&) {}

ASHLAR_REFERENCE(CrossEntropyForward);
ASHLAR_REFERENCE(CrossEntropyBackward);

}  // namespace ashlar::reference
