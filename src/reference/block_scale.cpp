#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const BlockScaleQuantize&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(BlockScaleQuantize);

template <class Operands>
void evaluate(const BlockScaleDequantize&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(BlockScaleDequantize);

}  // namespace ashlar::reference
