#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const PagedCacheLoad&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(PagedCacheLoad);

template <class Operands>
void evaluate(const ExpandBandMatrix&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(ExpandBandMatrix);

template <class Operands>
void evaluate(const ContractBandMatrix&, const Operands&) {}
ASHLAR_REFERENCE_INSTANTIATE(ContractBandMatrix);

}  // namespace ashlar::reference
