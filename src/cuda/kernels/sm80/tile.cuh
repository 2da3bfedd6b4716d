// Operand tiles in shared memory (sm_80 GEMM): rows of 16-byte pieces, XOR-swizzled by the row
// number against bank conflicts, and the readers of MMA fragments.
#pragma once

#include "lib/ptx_ldmatrix.cuh"
#include "lib/elements.cuh"

// kOuter rows of an operand (along m or n), kTileBytes of K each. The tile is stored K-major, or
// (kMnMajor) with m or n contiguous.
template <class Type, bool kMnMajor, int kOuter>
struct TileShape {
  typedef typename Type::Word Word;
  static const int kTileK = kTileBytes / (int)sizeof(Word);
  static const int kRows = kMnMajor ? kTileK : kOuter;
  static const int kRowBytes = kMnMajor ? kOuter * (int)sizeof(Word) : kTileBytes;
  // Read word by word, 4 rows at a time; otherwise by ldmatrix, 8 rows at a time.
  static const bool kByWord = sizeof(Word) == 8 || (sizeof(Word) == 4 && kMnMajor);

  // The XOR mask on the byte offset within the row.
  __device__ static int swizzle(int row) {
    if (kByWord) return (row & 3) << 5;
    return kRowBytes >= 128 ? (row & 7) << 4 : (row >> 1 & 3) << 4;
  }
  __device__ static int place(int row, int byte) { return row * kRowBytes + (byte ^ swizzle(row)); }
};

// The part of 16 rows and 32 bytes of K that a lane holds, with g = lane / 4 and t = lane % 4: word
// t of
//   A: rows g and g + 8 of the first 16 bytes, then of the second 16 bytes
//   B: row g of the first and second 16 bytes, then row g + 8
// f64: element t of row g and of row g + 8.
template <class Type> struct Fragment { uint32 words[4]; };
template <> struct Fragment<f64> { double words[2]; };

// Reads the fragments of a warp whose rows start at `first`.
template <class Type, bool kMnMajor, int kOuter, bool kIsB>
struct FragmentReader {
  typedef TileShape<Type, kMnMajor, kOuter> Shape;
  static const int kSize = sizeof(typename Type::Word);
  static const int kTileK = 32 / kSize;  // of a slice
  int line, byte;  // of fragment 0, slice 0: byte offset of the row, and swizzled offset within it

  __device__ explicit FragmentReader(int first) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // ldmatrix: lane 8 i + j provides the address of row j of matrix i, which becomes word i.
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
  // The swizzled offset `more` bytes after `byte`: only bits 5 and 6 are swizzled, the others add.
  __device__ int advance(int more) const { return (byte ^ (more & 96)) + (more & ~96); }
  // Fragment i (16 rows each) of slice `slice` (32 bytes of K each).
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
