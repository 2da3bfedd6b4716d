// Types and functions that the generated operand descriptions of the sm_80 GEMM use.
#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

enum LoaderMode { kAsync, kVectors, kElements, kDirect };

// The part of the GEMM that a CTA computes.
struct WorkTile {
  int variant, batch;
  int k_begin, k_end;
};

template <class A, class B> struct IsSame { static const bool value = false; };
template <class A> struct IsSame<A, A> { static const bool value = true; };

// Converts an element in memory to the type of the tile.
template <class Type, class Element>
__device__ inline typename Type::Word word_of(Type type, Element element,
                                              typename Element::Word word) {
  if constexpr (IsSame<Type, Element>::value)
    return word;
  else
    return narrow(type, widen(element, word));
}
template <int kCount, class Type, class Element>
__device__ inline void load_words(Type type, Element element, const typename Element::Word* from,
                                  typename Type::Word (&words)[kCount]) {
  typedef Vector<kCount, typename Element::Word> Elements;
  Elements u;
#pragma unroll
  for (int i = 0; i < Elements::kPieces; ++i)
    u.pieces[i] = load_read_only((const typename Elements::Piece*)from + i);
#pragma unroll
  for (int l = 0; l < kCount; ++l) words[l] = word_of(type, element, u.words[l]);
}
