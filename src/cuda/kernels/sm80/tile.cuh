// Tiles of operands in shared memory: rows of 16-byte pieces that change places from row to row, so
// that what a warp reads or writes together lies in different banks.
#pragma once

#include "lib/ptx_ldmatrix.cuh"
#include "lib/elements.cuh"

// kOuter rows of the product's operand, kTileBytes of each along the depth. In memory of its own
// rows run along the depth, or (kMnMajor) across it.
template <class Type, bool kMnMajor, int kOuter>
struct TileShape {
  typedef typename Type::Word Word;
  static const int kTileK = kTileBytes / (int)sizeof(Word);
  static const int kRows = kMnMajor ? kTileK : kOuter;
  static const int kRowBytes = kMnMajor ? kOuter * (int)sizeof(Word) : kTileBytes;
  // Words that are read one by one, 4 rows of them at a time; all else by ldmatrix, 8 rows.
  static const bool kByWord = sizeof(Word) == 8 || (sizeof(Word) == 4 && kMnMajor);

  // What the byte's number within the row is exchanged by.
  __device__ static int swizzle(int row) {
    if (kByWord) return (row & 3) << 5;
    return kRowBytes >= 128 ? (row & 7) << 4 : (row >> 1 & 3) << 4;
  }
  __device__ static int place(int row, int byte) { return row * kRowBytes + (byte ^ swizzle(row)); }
};

// What a lane holds of 16 rows and 32 bytes of depth, with g = lane / 4 and t = lane % 4: word t of
//   A: rows g and g + 8 of the first 16 bytes, then of the second 16 bytes
//   B: row g of the first and second 16 bytes, then row g + 8
// f64: number t of row g and of row g + 8.
template <class Type> struct Fragment { uint32 words[4]; };
template <> struct Fragment<f64> { double words[2]; };

// Reads the fragments of a warp whose rows begin at `first`.
template <class Type, bool kMnMajor, int kOuter, bool kIsB>
struct FragmentReader {
  typedef TileShape<Type, kMnMajor, kOuter> Shape;
  static const int kSize = sizeof(typename Type::Word);
  static const int kTileK = 32 / kSize;  // of a slice
  int line, byte;  // of fragment 0, slice 0: bytes of whole rows, and the exchanged byte in the row

  __device__ explicit FragmentReader(int first) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Lane 8 i + j has the address of row j of matrix i, which becomes word i.
    const int matrix = lane / 8, row_half = kIsB ? matrix / 2 : matrix % 2;
    const int depth_half = kIsB ? matrix % 2 : matrix / 2;
    int row;
    if constexpr (Shape::kByWord) {
      row = kMnMajor ? t : first + g;
      byte = (kMnMajor ? first + g : t) * kSize;
    } else if constexpr (kMnMajor) {
      row = depth_half * 8 + lane % 8;
      byte = first * kSize + row_half * 16;
    } else {
      row = first + row_half * 8 + lane % 8;
      byte = depth_half * 16;
    }
    line = row * Shape::kRowBytes;
    byte ^= Shape::swizzle(row);
  }
  // Where `more` bytes behind `byte` are: exchanged in bits 5 and 6 only, the others just add up.
  __device__ int advance(int more) const { return (byte ^ (more & 96)) + (more & ~96); }
  // Fragment number i, 16 rows each, of slice number `slice`, 32 bytes of depth each.
  __device__ void read(const uint8* tile, int i, int slice, Fragment<Type>& to) const {
    if constexpr (kSize == 8) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        to.words[half] =
            *(const double*)(tile + (kMnMajor
                                         ? line + slice * kTileK * Shape::kRowBytes +
                                               advance((16 * i + 8 * half) * kSize)
                                         : line + (16 * i + 8 * half) * Shape::kRowBytes +
                                               (byte ^ slice * 32)));
    } else if constexpr (Shape::kByWord) {
#pragma unroll
      for (int high = 0; high < 2; ++high)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          to.words[kIsB ? 2 * half + high : 2 * high + half] =
              *(const uint32*)(tile + line + (slice * kTileK + 4 * high) * Shape::kRowBytes +
                               advance((16 * i + 8 * half) * kSize));
    } else if constexpr (kMnMajor) {
      ldmatrix<true>(to.words, tile + line + slice * kTileK * Shape::kRowBytes +
                                        (byte ^ i * 16 * kSize));
    } else {
      ldmatrix<false>(to.words, tile + line + i * 16 * Shape::kRowBytes +
                                         (byte ^ slice * 32));
    }
  }
};
