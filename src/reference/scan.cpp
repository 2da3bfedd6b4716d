#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Scan&, const Operands&) {}

ASHLAR_REFERENCE(Scan);

}  // namespace ashlar::reference
