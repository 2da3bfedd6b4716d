#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Rope&, const Operands&) {}

ASHLAR_REFERENCE(Rope);

}  // namespace ashlar::reference
