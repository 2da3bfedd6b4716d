#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const LrnForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(LrnForward);

template <class Operands>
void evaluate(const LrnBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(LrnBackward);

template <class Operands>
void evaluate(const DivisiveNormForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(DivisiveNormForward);

template <class Operands>
void evaluate(const DivisiveNormBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(DivisiveNormBackward);

}  // namespace ashlar::reference
