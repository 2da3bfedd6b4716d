#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const MoeGroupedMatmul&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(MoeGroupedMatmul);

template <class Operands>
void evaluate(const MoeGroupedMatmulBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(MoeGroupedMatmulBackward);

}  // namespace ashlar::reference
