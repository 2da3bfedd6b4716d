// CUDA's math functions. Fast approximations are computed exactly.
#pragma once

#include "language.hpp"

namespace {

// --- bits

inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long y = 0;
  for (int i = 0; i < 64; ++i) y |= (x >> i & 1) << (63 - i);
  return y;
}
inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned select = selector >> 4 * i & 15;
    unsigned byte = (unsigned)(both >> 8 * (select & 7)) & 255;
    if (select & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

// --- integers

inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)((unsigned long long)x * y >> 32);
}
inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
  return c;
}
inline int abs(int x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return abs(x); }

// --- unary functions under all names: exp(float), exp(double), expf(float)

#define EMULATED_UNARY(name)                                       \
  inline float name##f(float x) { return __builtin_##name##f(x); } \
  inline float name(float x) { return __builtin_##name##f(x); }    \
  inline double name(double x) { return __builtin_##name(x); }     \
  inline double name(int x) { return __builtin_##name((double)x); }
EMULATED_UNARY(sqrt)
EMULATED_UNARY(cbrt)
EMULATED_UNARY(exp)
EMULATED_UNARY(exp2)
EMULATED_UNARY(expm1)
EMULATED_UNARY(log)
EMULATED_UNARY(log2)
EMULATED_UNARY(log10)
EMULATED_UNARY(log1p)
EMULATED_UNARY(sin)
EMULATED_UNARY(cos)
EMULATED_UNARY(tan)
EMULATED_UNARY(asin)
EMULATED_UNARY(acos)
EMULATED_UNARY(atan)
EMULATED_UNARY(sinh)
EMULATED_UNARY(cosh)
EMULATED_UNARY(tanh)
EMULATED_UNARY(asinh)
EMULATED_UNARY(acosh)
EMULATED_UNARY(atanh)
EMULATED_UNARY(erf)
EMULATED_UNARY(erfc)
EMULATED_UNARY(lgamma)
EMULATED_UNARY(tgamma)
EMULATED_UNARY(fabs)
EMULATED_UNARY(floor)
EMULATED_UNARY(ceil)
EMULATED_UNARY(trunc)
EMULATED_UNARY(rint)
EMULATED_UNARY(round)
EMULATED_UNARY(nearbyint)
EMULATED_UNARY(logb)
#undef EMULATED_UNARY
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float exp10f(float x) { return __builtin_powf(10.f, x); }
inline double exp10(double x) { return __builtin_pow(10.0, x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752440f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline int ilogbf(float x) { return __builtin_ilogbf(x); }
inline int ilogb(double x) { return __builtin_ilogb(x); }
inline long long llrintf(float x) { return __builtin_llrintf(x); }
inline long long llrint(double x) { return __builtin_llrint(x); }
inline long lrintf(float x) { return __builtin_lrintf(x); }
inline long lrint(double x) { return __builtin_lrint(x); }
inline bool isnan(float x) { return x != x; }
inline bool isnan(double x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
inline float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
inline double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
inline float scalbnf(float x, int e) { return __builtin_scalbnf(x, e); }
inline double scalbn(double x, int e) { return __builtin_scalbn(x, e); }
inline float frexpf(float x, int* e) { return __builtin_frexpf(x, e); }
inline double frexp(double x, int* e) { return __builtin_frexp(x, e); }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline void sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
inline double sinpi(double x) { return sin(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
inline double cospi(double x) { return cos(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }

// --- binary and ternary functions

#define EMULATED_BINARY(name)                                                  \
  inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); }    \
  inline double name(double x, double y) { return __builtin_##name(x, y); }
EMULATED_BINARY(pow)
EMULATED_BINARY(fmod)
EMULATED_BINARY(remainder)
EMULATED_BINARY(atan2)
EMULATED_BINARY(hypot)
EMULATED_BINARY(fmin)
EMULATED_BINARY(fmax)
EMULATED_BINARY(fdim)
EMULATED_BINARY(copysign)
EMULATED_BINARY(nextafter)
#undef EMULATED_BINARY
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

#define EMULATED_EXTREMES(type)                             \
  inline type min(type x, type y) { return y < x ? y : x; } \
  inline type max(type x, type y) { return x < y ? y : x; }
EMULATED_EXTREMES(int)
EMULATED_EXTREMES(unsigned)
EMULATED_EXTREMES(long)
EMULATED_EXTREMES(unsigned long)
EMULATED_EXTREMES(long long)
EMULATED_EXTREMES(unsigned long long)
#undef EMULATED_EXTREMES
inline unsigned min(int x, unsigned y) { return min((unsigned)x, y); }
inline unsigned min(unsigned x, int y) { return min(x, (unsigned)y); }
inline unsigned max(int x, unsigned y) { return max((unsigned)x, y); }
inline unsigned max(unsigned x, int y) { return max(x, (unsigned)y); }
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin((double)x, y); }
inline double min(double x, float y) { return fmin(x, (double)y); }
inline double max(float x, double y) { return fmax((double)x, y); }
inline double max(double x, float y) { return fmax(x, (double)y); }

// --- fast and explicitly rounded variants

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.f ? fminf(x, 1.f) : 0.f; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __frcp_rn(float x) { return 1.f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

inline float __double2float_rn(double x) { return (float)x; }
inline float __double2float_rz(double x) {
  const float f = (float)x;
  // Steps towards zero where rounding went away from it; infinity becomes the largest finite value.
  return fabs((double)f) > fabs(x) ? __uint_as_float(__float_as_uint(f) - 1) : f;
}
// Float-to-integer conversions saturate on a GPU; NaN becomes 0 (64 bits: the largest magnitude).
template <class Integer>
inline Integer emulated_to_integer(double x, double low, double high) {
  if (x != x) return 0;
  if (x <= low) return (Integer)low;
  return x >= high ? (Integer)high : (Integer)x;
}
inline int emulated_to_int(double x) {
  return emulated_to_integer<int>(x, -2147483648.0, 2147483647.0);
}
inline unsigned emulated_to_uint(double x) {
  return emulated_to_integer<unsigned>(x, 0.0, 4294967295.0);
}
inline int __float2int_rn(float x) { return emulated_to_int(rintf(x)); }
inline int __float2int_rz(float x) { return emulated_to_int(truncf(x)); }
inline int __float2int_rd(float x) { return emulated_to_int(floorf(x)); }
inline int __float2int_ru(float x) { return emulated_to_int(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return emulated_to_uint(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return emulated_to_uint(truncf(x)); }
inline int __double2int_rn(double x) { return emulated_to_int(rint(x)); }
inline int __double2int_rz(double x) { return emulated_to_int(trunc(x)); }
inline long long __double2ll_rn(double x) { return llrint(x); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }

// Increases, but does not measure time.
inline long long clock64() { return ++emulated_state.clock; }

}  // namespace
