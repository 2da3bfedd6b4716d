#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const CausalConvForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(CausalConvForward);

template <class Operands>
void evaluate(const CausalConvBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(CausalConvBackward);

}  // namespace ashlar::reference
