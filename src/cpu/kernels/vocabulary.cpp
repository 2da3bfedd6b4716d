// Dispatches rows of logits to the best SIMD target.
#include "cpu/kernels/vocabulary.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/vocabulary.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels/vocabulary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

const VocabularyRows<float>* VocabularyRowsF32() { return &kVocabularyRows<float>; }
const VocabularyRows<double>* VocabularyRowsF64() { return &kVocabularyRows<double>; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(VocabularyRowsF32);
HWY_EXPORT(VocabularyRowsF64);

template <>
const VocabularyRows<float>& vocabulary_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(VocabularyRowsF32)();
}
template <>
const VocabularyRows<double>& vocabulary_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(VocabularyRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
