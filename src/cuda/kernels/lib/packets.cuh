// kCount contiguous elements in their memory format. They are converted where they are used, so
// that loads do not stall where they are issued.
#pragma once

#include "lib/elements.cuh"

// Whole registers, also for a single short element.
template <int kCount, class D>
struct Bits {
  typedef Vector<kCount, typename D::Word> Words;
  typedef typename Words::Piece Piece;
  static const bool kIsShort = sizeof(Piece) < 4;
  template <bool kShort, class T> struct Register { typedef uint32 Type; };
  template <class T> struct Register<false, T> { typedef T Type; };
  typename Register<kIsShort, Piece>::Type pieces[Words::kPieces];

  __device__ void load(const void* data, int64 index) {
    const auto* from = (const Piece*)((const typename D::Word*)data + index);
#pragma unroll
    for (int i = 0; i < Words::kPieces; ++i) pieces[i] = load_read_only(from + i);
  }
  template <class R>
  __device__ void widen_to(R (&to)[kCount]) const {
    Words u;
#pragma unroll
    for (int i = 0; i < Words::kPieces; ++i) u.pieces[i] = (Piece)pieces[i];
    if constexpr (WidensPairs<R, D>::value && kCount == 1) {
      to[0] = __uint_as_float((uint32)pieces[0] << 16);
    } else if constexpr (WidensPairs<R, D>::value && kCount % 2 == 0) {
#pragma unroll
      for (int i = 0; i < kCount; i += 2) {
        to[i] = __uint_as_float(u.pairs[i / 2] << 16);
        to[i + 1] = __uint_as_float(u.pairs[i / 2] & 0xffff0000u);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[i] = (R)widen(D(), u.words[i]);
    }
  }
};

// Values that are computed, not loaded.
template <int kCount, class R>
struct Numbers {
  R values[kCount];
};
