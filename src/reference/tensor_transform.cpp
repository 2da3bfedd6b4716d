#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const TensorTransform&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(TensorTransform);

}  // namespace ashlar::reference
