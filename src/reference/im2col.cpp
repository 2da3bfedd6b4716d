#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Im2Col&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(Im2Col);

}  // namespace ashlar::reference
