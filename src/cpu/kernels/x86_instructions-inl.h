// AVX-512 instructions without a Highway wrapper, one function each, and compiler barriers. The
// only place for intrinsics and assembly on the CPU; every caller also has a portable path.
#if defined(ASHLAR_CPU_KERNELS_X86_INSTRUCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_X86_INSTRUCTIONS_INL_H_
#undef ASHLAR_CPU_KERNELS_X86_INSTRUCTIONS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_X86_INSTRUCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Compiler barrier that keeps a pointer in a register, so that addresses are derived from it.
// Compilers tend to keep one address per load instead, more than there are registers.
template <class T>
HWY_INLINE void KeepInRegister(T& value) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm("" : "+r"(value));
#else
  static_cast<void>(value);
#endif
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
using Floats512 = hn::Vec<hn::ScalableTag<float>>;
using Integers512 = hn::Vec<hn::ScalableTag<std::int32_t>>;

// x * 2^n, for integers n.
HWY_INLINE Floats512 ScaleByPowers(Floats512 x, Floats512 n) {
  return Floats512{_mm512_scalef_ps(x.raw, n.raw)};
}

// vpdpbusd: adds to every lane of `sum` the four products of the unsigned bytes of a and the signed
// bytes of b. VNNI is detected at run time and emitted as assembly, without compiler support.
HWY_INLINE void VnniDotAccumulate(Integers512& sum, Integers512 a, Integers512 b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
}

// 16 accumulators, saturated to bytes.
HWY_INLINE void StoreSaturated(Integers512 sums, std::int8_t* bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), _mm512_cvtsepi32_epi8(sums.raw));
}
HWY_INLINE void StoreSaturated(Integers512 sums, std::uint8_t* bytes) {
  const Integers512 positive = hn::Max(sums, hn::Zero(hn::ScalableTag<std::int32_t>()));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), _mm512_cvtusepi32_epi8(positive.raw));
}
#endif

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
