#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const TopK&, const Operands&) {}

ASHLAR_REFERENCE(TopK);

}  // namespace ashlar::reference
