// Loads and stores of runs of kCount elements: contiguous, strided, ragged, packed.
#pragma once

#include "lib/elements.cuh"

template <int kCount, class R>
__device__ inline void copy(const R (&from)[kCount], R (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = from[l];
}
template <int kCount, class R>
__device__ inline void fill(R value, R (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = value;
}

// Elements narrower than a byte: `index` is a multiple of kCount.
template <int kCount, class R, class D>
__device__ inline void load_packed(D d, const void* data, int64 index, R (&to)[kCount]) {
  const int kBytes = kCount * D::kBits / 8, kWordBytes = kBytes < 4 ? kBytes : 4;
  if constexpr (kBytes == 0) {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = load_element<R>(d, data, index + l);
  } else {
    const int kPerWord = kWordBytes * 8 / D::kBits;
    typedef typename Packet<kWordBytes>::Type Word;
    const Word* words = (const Word*)((const uint8*)data + index / kCount * kBytes);
#pragma unroll
    for (int first = 0; first < kCount; first += kPerWord) {
      const uint32 word = (uint32)load_read_only(words + first / kPerWord);
#pragma unroll
      for (int l = 0; l < kPerWord; ++l)
        to[first + l] = (R)widen(d, (uint8)(word >> l * D::kBits & ((1u << D::kBits) - 1)));
    }
  }
}

// Contiguous elements: aligned vectors where kCount > 1, as the caller guarantees.
template <int kCount, class R, class D>
__device__ inline void load_row(D d, const void* data, int64 index, R (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = load_element<R>(d, data, index);
  } else if constexpr (IsPacked<D>::value) {
    load_packed(d, data, index, to);
  } else {
    load_vector(d, data, index, to);
  }
}
// Loads without conversion, for data that is read once; widen_vector converts.
template <int kCount, class D>
__device__ inline void hold_row(D, const void* data, int64 index,
                                Vector<kCount, typename D::Word>& to) {
  typedef typename D::Word Word;
  typedef Vector<kCount, Word> Elements;
  const auto* from = (const typename Elements::Piece*)((const Word*)data + index);
#pragma unroll
  for (int i = 0; i < Elements::kPieces; ++i) to.pieces[i] = load_once(from + i);
}
// For elements that are read once.
template <int kCount, class R, class D>
__device__ inline void load_row_once(D d, const void* data, int64 index, R (&to)[kCount]) {
  if constexpr (kCount == 1 || IsPacked<D>::value)
    load_row(d, data, index, to);
  else
    load_vector_once(d, data, index, to);
}
// Prefetches to L2 the 128-byte line that begins with these elements. The values in `to` are
// meaningless.
template <int kCount, class R, class D>
__device__ inline void prefetch_row(D, const void* data, int64 index, R (&to)[kCount]) {
  if constexpr (!IsPacked<D>::value) {
    const uint64 kLine = 128, address = (uint64)((const typename D::Word*)data + index);
    if (address % kLine < kCount * sizeof(typename D::Word)) prefetch_to_l2((const void*)address);
  }
  fill((R)0, to);
}
template <int kCount, class R, class D>
__device__ inline void store_row(D d, void* data, int64 index, const R (&from)[kCount]) {
  if constexpr (kCount == 1) {
    store_element(d, data, index, from[0]);
  } else if constexpr (IsPacked<D>::value) {
    // Whole bytes: `index` is a multiple of kCount.
    const int per_byte = 8 / D::kBits, here = per_byte < kCount ? per_byte : kCount;
    if constexpr (kCount % per_byte == 0) {
#pragma unroll
      for (int first = 0; first < kCount; first += here) {
        uint32 byte = 0;
#pragma unroll
        for (int l = 0; l < here; ++l) byte |= (uint32)narrow(d, from[first + l]) << l * D::kBits;
        ((uint8*)data)[(index + first) / per_byte] = (uint8)byte;
      }
    } else {
#pragma unroll
      for (int l = 0; l < kCount; ++l) store_element(d, data, index + l, from[l]);
    }
  } else {
    store_vector(d, data, index, from);
  }
}

// For elements that are not read again soon.
template <int kCount, class R, class D>
__device__ inline void stream_row(D d, void* data, int64 index, const R (&from)[kCount]) {
  if constexpr (kCount == 1 || IsPacked<D>::value)
    store_row(d, data, index, from);
  else
    stream_vector(d, data, index, from);
}

template <int kCount, class R, class D>
__device__ inline void load_strided(D d, const void* data, int64 index, int64 stride,
                                    R (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = load_element<R>(d, data, index + l * stride);
}
template <int kCount, class R, class D>
__device__ inline void store_strided(D d, void* data, int64 index, int64 stride,
                                     const R (&from)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) store_element(d, data, index + l * stride, from[l]);
}

// A ragged view: row r begins at element starts[r] and ends before starts[r + 1]. `first` is the
// index of the row's start, `next` the distance to the following one. Elements past the end do not
// exist: they read as 0 and are not written.
template <int kCount, class R, class D, class O>
__device__ inline void load_ragged(D d, const void* data, O o, const void* starts, int64 first,
                                   int64 next, int64 within, int64 stride, R (&to)[kCount]) {
  const int64 start = load_integer(o, starts, first), end = load_integer(o, starts, first + next);
#pragma unroll
  for (int l = 0; l < kCount; ++l) {
    const int64 index = start + within + l * stride;
    to[l] = index < end ? load_element<R>(d, data, index) : (R)0;
  }
}
template <int kCount, class R, class D, class O>
__device__ inline void store_ragged(D d, void* data, O o, const void* starts, int64 first,
                                    int64 next, int64 within, int64 stride,
                                    const R (&from)[kCount]) {
  const int64 start = load_integer(o, starts, first), end = load_integer(o, starts, first + next);
#pragma unroll
  for (int l = 0; l < kCount; ++l) {
    const int64 index = start + within + l * stride;
    if (index < end) store_element(d, data, index, from[l]);
  }
}
