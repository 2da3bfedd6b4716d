// Tiles of operands in shared memory: rows of 16-byte pieces that change places from row to row, so
// that what a warp reads or writes together lies in different banks.
#pragma once

#include "lib/ptx_matrix.cuh"
#include "lib/elements.cuh"

// kOuter rows of the product's operand, kTileBytes of each along the depth. In memory of its own
// rows run along the depth, or (kMnMajor) across it.
template <class Type, bool kMnMajor, int kOuter>
struct TileShape {
  typedef typename Type::Word Word;
  static const int kDepth = kTileBytes / (int)sizeof(Word);
  static const int kRows = kMnMajor ? kDepth : kOuter;
  static const int kRowBytes = kMnMajor ? kOuter * (int)sizeof(Word) : kTileBytes;
  // Words that are read one by one, 4 rows of them at a time; all else by ldmatrix, 8 rows.
  static const bool kByWord = sizeof(Word) == 8 || (sizeof(Word) == 4 && kMnMajor);

  // What the byte's number within the row is exchanged by.
  __device__ static int turn(int row) {
    if (kByWord) return (row & 3) << 5;
    return kRowBytes >= 128 ? (row & 7) << 4 : (row >> 1 & 3) << 4;
  }
  __device__ static int place(int row, int byte) { return row * kRowBytes + (byte ^ turn(row)); }
};

// What a lane holds of 16 rows and 32 bytes of depth: words 0 and 1 of rows lane / 4 and
// lane / 4 + 8, first 16 bytes; 2 and 3 of the second 16 bytes. f64: two numbers.
template <class Type> struct Fragment { uint32 words[4]; };
template <> struct Fragment<f64> { double words[2]; };

// Reads the fragments of a warp whose rows begin at `first`.
template <class Type, bool kMnMajor, int kOuter>
struct FragmentReader {
  typedef TileShape<Type, kMnMajor, kOuter> Shape;
  static const int kSize = sizeof(typename Type::Word);
  int line, byte;  // of fragment 0, slice 0: bytes of whole rows, and the exchanged byte in the row

  __device__ explicit FragmentReader(int first) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if constexpr (Shape::kByWord) {
      const int row = kMnMajor ? t : first + g;
      line = row * Shape::kRowBytes;
      byte = (kMnMajor ? (first + g) * kSize : t * kSize) ^ Shape::turn(row);
    } else if constexpr (kMnMajor) {
      const int row = lane / 16 * 8 + lane % 8;
      line = row * Shape::kRowBytes;
      byte = (first * kSize + (lane / 8 & 1) * 16) ^ Shape::turn(row);
    } else {
      const int row = first + lane % 16;
      line = row * Shape::kRowBytes;
      byte = (lane / 16 * 16) ^ Shape::turn(row);
    }
  }
  // Fragment number i, 16 rows each, of slice number `slice`, 32 bytes of depth each.
  __device__ void read(const uint8* tile, int i, int slice, Fragment<Type>& to) const {
    const int depth = 32 / kSize;  // of a slice
    if constexpr (Shape::kByWord && kMnMajor) {
      typedef typename Type::Word Word;
      const int per_half = sizeof(to.words) / sizeof(Word) / 2;
#pragma unroll
      for (int high = 0; high < per_half; ++high)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint8* from = tile + line + (slice * depth + 4 * high) * Shape::kRowBytes +
                              (byte ^ (16 * i + 8 * j) * kSize);
          if constexpr (kSize == 8)
            to.words[j] = *(const double*)from;
          else
            to.words[2 * high + j] = *(const uint32*)from;
        }
    } else if constexpr (Shape::kByWord) {
#pragma unroll
      for (int j = 0; j < 2; ++j)
        to.words[j] = *(const double*)(tile + line + (16 * i + 8 * j) * Shape::kRowBytes +
                                       (byte ^ slice * 32));
    } else if constexpr (kMnMajor) {
      load_matrices<true>(to.words, tile + line + slice * depth * Shape::kRowBytes +
                                        (byte ^ i * 16 * kSize));
    } else {
      load_matrices<false>(to.words, tile + line + i * 16 * Shape::kRowBytes +
                                         (byte ^ slice * 32));
    }
  }
};
