// Conversion between elements in memory and values in registers. Needs no CUDA header: conversions
// with hardware support are PTX instructions, the others are written out.
#pragma once

#include "lib/integers.cuh"
#include "lib/ptx_convert.cuh"
#include "lib/ptx_memory.cuh"
#include "lib/small_floats.cuh"

// One tag type per dtype; `Word` is its storage type. Types narrower than a byte have `kBits`.
struct f64 { typedef double Word; };
struct f32 { typedef float Word; };
struct f16 { typedef uint16 Word; };
struct bf16 { typedef uint16 Word; };
struct e4m3 { typedef uint8 Word; };
struct e5m2 { typedef uint8 Word; };
struct e8m0 { typedef uint8 Word; };
struct i64 { typedef int64 Word; };
struct i32 { typedef int Word; };
struct u32 { typedef uint32 Word; };
struct i8 { typedef int8 Word; };
struct u8 { typedef uint8 Word; };
struct e2m1 { typedef uint8 Word; static const int kBits = 4; };
struct i4 { typedef uint8 Word; static const int kBits = 4; };
struct u4 { typedef uint8 Word; static const int kBits = 4; };
struct boolean { typedef uint8 Word; static const int kBits = 1; };

template <class D> struct IsPacked { static const bool value = false; };
template <> struct IsPacked<e2m1> { static const bool value = true; };
template <> struct IsPacked<i4> { static const bool value = true; };
template <> struct IsPacked<u4> { static const bool value = true; };
template <> struct IsPacked<boolean> { static const bool value = true; };

// --- widening: exact

__device__ inline float bf16_to_float(uint16 h) { return __uint_as_float((uint32)h << 16); }

__device__ inline float widen(f32, float w) { return w; }
__device__ inline double widen(f64, double w) { return w; }
__device__ inline float widen(f16, uint16 w) { return f16_to_float(w); }
__device__ inline float widen(bf16, uint16 w) { return bf16_to_float(w); }
__device__ inline float widen(e4m3, uint8 w) {
  return (w & 0x7f) == 0x7f ? quiet_nan() : small_to_float<4, 3>(w);
}
// e5m2 is the upper half of an f16.
__device__ inline float widen(e5m2, uint8 w) { return f16_to_float((uint16)((uint16)w << 8)); }
__device__ inline float widen(e2m1, uint8 w) { return small_to_float<2, 1>(w); }
__device__ inline float widen(e8m0, uint8 w) {
  if (w == 255) return quiet_nan();
  return w == 0 ? __uint_as_float(0x00400000u) : __uint_as_float((uint32)w << 23);
}
__device__ inline double widen(i64, int64 w) { return (double)w; }
__device__ inline double widen(i32, int w) { return (double)w; }
__device__ inline double widen(u32, uint32 w) { return (double)w; }
__device__ inline float widen(i8, int8 w) { return (float)w; }
__device__ inline float widen(u8, uint8 w) { return (float)w; }
// The bits of 2^23 + (w + 8); one subtraction yields w.
__device__ inline float widen(i4, uint8 w) {
  return __uint_as_float((uint32)w ^ 0x4b000008u) - 8388616.f;
}
__device__ inline float widen(u4, uint8 w) { return (float)w; }
__device__ inline float widen(boolean, uint8 w) { return (float)w; }

// --- narrowing: one rounding, to nearest even; integers saturate, NaN becomes 0

// f64 to f32 with round to odd: the discarded bits are recorded in the last bit, so that rounding
// the result to a format of at most 22 bits equals rounding the f64.
__device__ inline float to_odd(double x) {
  const float f = __double2float_rz(x);
  return (double)f == x || x != x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}
__device__ inline float to_odd(float x) { return x; }

template <class R>
__device__ inline int64 to_integer(R x, double low, double high) {
  if (x != x) return 0;
  const double r = rint((double)x);
  if (r <= low) return (int64)low;
  return r >= high ? (high > 9e18 ? 0x7fffffffffffffffll : (int64)high) : (int64)r;
}

template <class R> __device__ inline float narrow(f32, R x) { return (float)x; }
template <class R> __device__ inline double narrow(f64, R x) { return (double)x; }
template <class R> __device__ inline uint16 narrow(f16, R x) { return float_to_f16(to_odd(x)); }
template <class R> __device__ inline uint16 narrow(bf16, R x) { return float_to_bf16(to_odd(x)); }
template <class R> __device__ inline uint8 narrow(e4m3, R x) {
  return (uint8)pair_to_e4m3(to_odd(x), 0.f);
}
template <class R> __device__ inline uint8 narrow(e5m2, R x) {
  if (x != x) return 0x7e;
  return (uint8)float_to_small<5, 2, true>(to_odd(x), 57344.f);
}
template <class R> __device__ inline uint8 narrow(e2m1, R x) {
  return (uint8)float_to_small<2, 1, false>(x != x ? 6.f : to_odd(x), 6.f);
}
// To the nearest power of two, the larger one when halfway.
template <class R> __device__ inline uint8 narrow(e8m0, R x) {
  if (x != x || x < (R)0) return 255;
  if (x == (R)0) return 0;
  const double d = (double)x;
  const uint64 bits = (uint64)__double_as_longlong(d);
  const int exponent = (int)(bits >> 52) - 1023 + (int)(bits >> 51 & 1u);
  return (uint8)max(0, min(254, exponent + 127));
}
template <class R> __device__ inline int64 narrow(i64, R x) {
  return to_integer(x, -9223372036854775808.0, 9223372036854775807.0);
}
template <class R> __device__ inline int narrow(i32, R x) {
  return (int)to_integer(x, -2147483648.0, 2147483647.0);
}
template <class R> __device__ inline uint32 narrow(u32, R x) {
  return (uint32)to_integer(x, 0.0, 4294967295.0);
}
template <class R> __device__ inline int8 narrow(i8, R x) {
  return x != x ? (int8)0 : (int8)rint(x < (R)-128 ? (R)-128 : x > (R)127 ? (R)127 : x);
}
template <class R> __device__ inline uint8 narrow(u8, R x) {
  return x != x ? (uint8)0 : (uint8)rint(x < (R)0 ? (R)0 : x > (R)255 ? (R)255 : x);
}
template <class R> __device__ inline uint8 narrow(i4, R x) {
  return x != x ? (uint8)0 : (uint8)((int)rint(x < (R)-8 ? (R)-8 : x > (R)7 ? (R)7 : x) & 15);
}
template <class R> __device__ inline uint8 narrow(u4, R x) {
  return x != x ? (uint8)0 : (uint8)rint(x < (R)0 ? (R)0 : x > (R)15 ? (R)15 : x);
}
template <class R> __device__ inline uint8 narrow(boolean, R x) { return x != (R)0; }

// --- one element

template <class R, class D>
__device__ inline R load_element(D d, const void* data, int64 index) {
  if constexpr (IsPacked<D>::value) {
    const int per_byte = 8 / D::kBits;
    const uint8 byte = ((const uint8*)data)[index / per_byte];
    return (R)widen(d, (uint8)(byte >> (int)(index % per_byte) * D::kBits & ((1 << D::kBits) - 1)));
  } else {
    return (R)widen(d, ((const typename D::Word*)data)[index]);
  }
}
// An integer with all its bits; other types are truncated.
template <class D>
__device__ inline int64 load_integer(D d, const void* data, int64 index) {
  return (int64)load_element<double>(d, data, index);
}
__device__ inline int64 load_integer(i64, const void* data, int64 index) {
  return ((const int64*)data)[index];
}
// Atomic where elements share a byte: several threads may store to it at once.
template <class R, class D>
__device__ inline void store_element(D d, void* data, int64 index, R value) {
  if constexpr (IsPacked<D>::value) {
    const int per_byte = 8 / D::kBits;
    const uint64 byte = (uint64)data + index / per_byte;
    const int shift = (int)(byte & 3) * 8 + (int)(index % per_byte) * D::kBits;
    uint32* word = (uint32*)(byte & ~3ull);
    const uint32 mask = ((1u << D::kBits) - 1) << shift;
    const uint32 bits = (uint32)narrow(d, value) << shift;
    atomicAnd(word, ~mask);
    atomicOr(word, bits);
  } else {
    ((typename D::Word*)data)[index] = narrow(d, value);
  }
}
// Rounds to the type and back.
template <class R, class D>
__device__ inline R round_through(D d, R value) {
  return (R)widen(d, narrow(d, value));
}

// --- kCount contiguous elements, in as few accesses as the alignment of `index` allows

template <int kBytes> struct Packet;
template <> struct Packet<16> { typedef uint4 Type; };
template <> struct Packet<8> { typedef uint2 Type; };
template <> struct Packet<4> { typedef uint32 Type; };
template <> struct Packet<2> { typedef uint16 Type; };
template <> struct Packet<1> { typedef uint8 Type; };

// The elements as words, and as the pieces (up to 16 bytes) of memory accesses.
template <int kCount, class Word>
union Vector {
  static const int kBytes = kCount * sizeof(Word) < 16 ? kCount * sizeof(Word) : 16;
  static const int kPieces = kCount * sizeof(Word) / kBytes;
  typedef typename Packet<kBytes>::Type Piece;
  Piece pieces[kPieces];
  Word words[kCount];
  uint32 pairs[(kCount + 1) / 2];   // of words of 16 bits
  uint16 halves[(kCount + 1) / 2];  // pairs of words of 8 bits
};

// bf16 is the upper half of an f32: one instruction per element of a pair.
template <class R, class D> struct WidensPairs { static const bool value = false; };
template <> struct WidensPairs<float, bf16> { static const bool value = true; };

template <int kCount, class R, class D>
__device__ inline void widen_vector(D d, const Vector<kCount, typename D::Word>& u,
                                    R (&values)[kCount]) {
  if constexpr (WidensPairs<R, D>::value && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      values[i] = __uint_as_float(u.pairs[i / 2] << 16);
      values[i + 1] = __uint_as_float(u.pairs[i / 2] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = (R)widen(d, u.words[i]);
  }
}
// Read-only: no thread of the launch writes the location.
template <int kCount, class R, class D>
__device__ inline void load_vector(D d, const void* data, int64 index, R (&values)[kCount]) {
  typedef typename D::Word Word;
  Vector<kCount, Word> u;
  const auto* from = (const typename Vector<kCount, Word>::Piece*)((const Word*)data + index);
#pragma unroll
  for (int i = 0; i < Vector<kCount, Word>::kPieces; ++i) u.pieces[i] = load_read_only(from + i);
  widen_vector(d, u, values);
}
// The same for data that is read once.
template <int kCount, class R, class D>
__device__ inline void load_vector_once(D d, const void* data, int64 index, R (&values)[kCount]) {
  typedef Vector<kCount, typename D::Word> Elements;
  Elements u;
  const auto* from = (const typename Elements::Piece*)((const typename D::Word*)data + index);
#pragma unroll
  for (int i = 0; i < Elements::kPieces; ++i) u.pieces[i] = load_once(from + i);
  widen_vector(d, u, values);
}
// 16- and 8-bit floats two at a time.
__device__ inline uint32 narrow_pair(f16, float low, float high) { return pair_to_f16(low, high); }
__device__ inline uint32 narrow_pair(bf16, float low, float high) {
  return pair_to_bf16(low, high);
}
__device__ inline uint16 narrow_pair(e4m3, float low, float high) {
  return pair_to_e4m3(low, high);
}
template <class R, class D> struct NarrowsPairs { static const bool value = false; };
template <> struct NarrowsPairs<float, f16> { static const bool value = true; };
template <> struct NarrowsPairs<float, bf16> { static const bool value = true; };
template <> struct NarrowsPairs<float, e4m3> { static const bool value = true; };

template <int kCount, class R, class D>
__device__ inline Vector<kCount, typename D::Word> narrow_vector(D d, const R (&values)[kCount]) {
  Vector<kCount, typename D::Word> u;
  if constexpr (NarrowsPairs<R, D>::value && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const auto pair = narrow_pair(d, values[i], values[i + 1]);
      if constexpr (sizeof(typename D::Word) == 1)
        u.halves[i / 2] = pair;
      else
        u.pairs[i / 2] = pair;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) u.words[i] = narrow(d, values[i]);
  }
  return u;
}
template <int kCount, class R, class D>
__device__ inline void store_vector(D d, void* data, int64 index, const R (&values)[kCount]) {
  typedef Vector<kCount, typename D::Word> Elements;
  const Elements u = narrow_vector(d, values);
  auto* to = (typename Elements::Piece*)((typename D::Word*)data + index);
#pragma unroll
  for (int i = 0; i < Elements::kPieces; ++i) store_piece(to + i, u.pieces[i]);
}
// The same for data that is not read again soon: evict first.
template <int kCount, class R, class D>
__device__ inline void stream_vector(D d, void* data, int64 index, const R (&values)[kCount]) {
  typedef Vector<kCount, typename D::Word> Elements;
  const Elements u = narrow_vector(d, values);
  auto* to = (typename Elements::Piece*)((typename D::Word*)data + index);
#pragma unroll
  for (int i = 0; i < Elements::kPieces; ++i)
    StreamPiece<Elements::kBytes>::store(to + i, u.pieces[i]);
}
