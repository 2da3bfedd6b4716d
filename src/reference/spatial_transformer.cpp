#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const GridGeneratorForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(GridGeneratorForward);

template <class Operands>
void evaluate(const GridGeneratorBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(GridGeneratorBackward);

template <class Operands>
void evaluate(const GridSampleForward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(GridSampleForward);

template <class Operands>
void evaluate(const GridSampleBackward&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(GridSampleBackward);

}  // namespace ashlar::reference
