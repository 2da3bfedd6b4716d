// Tiles of rows of Q, K and V in shared memory, and their loaders (sm_80 attention).
#pragma once

#include "lib/elements.cuh"
#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_ldmatrix.cuh"
#include "lib/ptx_opaque.cuh"

// kRows rows of kDim elements of 16 bits, padded with zeros to whole fragments. The pitch is an odd
// number of 16-byte chunks: eight rows of one column are in different banks.
template <int kRows, int kDim>
struct RowTile {
  static const int kColumns = (kDim + 15) / 16 * 16, kPitch = 2 * kColumns + 16;
  static const int kBytes = kRows * kPitch;
};

// The index of this thread. What depends on it is computed where it is needed, not kept in
// registers.
__device__ inline int fresh_thread() { return opaque((int)threadIdx.x) & kThreads - 1; }

// All threads of the CTA copy kRows rows, kAccess bytes at a time: 16, 8 or 4 by cp.async, 2 with
// any element stride and address. kLanes neighbouring threads share a row; a thread takes every
// kLanes-th chunk of every kStep-th row.
template <int kRows, int kDim, int kAccess>
struct RowLoader {
  typedef RowTile<kRows, kDim> Tile;
  static const int kChunks = Tile::kColumns / 8;
  static const int kLanes = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;  // per row
  static const int kStep = kThreads / kLanes, kSteps = (kRows + kStep - 1) / kStep;
  static const int kUnroll = kAccess == 2 ? 1 : kSteps;

  // Loads the rows from `first` on; rows from `end` on become zeros. Without kChecked there are
  // none.
  template <bool kChecked, class Source>
  __device__ static void load(const Source& source, uint8* tile, int first, int end) {
    const int thread = fresh_thread(), lane = thread % kLanes, first_row = thread / kLanes;
    const uint16* row = nullptr;
    if constexpr (!Source::kHasGaps) row = source.at(first + first_row) + along(source, 8 * lane);
    uint8* to = tile + first_row * Tile::kPitch + 16 * lane;
    const int left = end - first - first_row;
#pragma unroll kUnroll
    for (int step = 0; step < kSteps; ++step) {
      bool is_there = !kChecked || step * kStep < left;
      if constexpr (Source::kHasGaps) {
        const int index = first + first_row + step * kStep;
        row = is_there ? source.at(index) : nullptr;
        is_there = row != nullptr;
        row += along(source, 8 * lane);
      }
      if (kRows % kStep == 0 || first_row + step * kStep < kRows) {
#pragma unroll kAccess == 2 ? 1 : kChunks
        for (int c = 0; c < kChunks / kLanes; ++c)
          copy_chunk<kChecked || Source::kHasGaps>(source, to + 16 * kLanes * c,
                                                   row + along(source, 8 * kLanes * c),
                                                   8 * (lane + kLanes * c), is_there);
      }
      if constexpr (!Source::kHasGaps) row += source.step;
      to += kStep * Tile::kPitch;
    }
  }
  // Whether what this thread copied has a NaN or infinity.
  template <class Element>
  __device__ static bool has_nonfinite(Element element, const uint8* tile) {
    const int lane = (int)threadIdx.x % kLanes, first_row = (int)threadIdx.x / kLanes;
    uint32 found = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      if (kRows % kStep == 0 || first_row + step * kStep < kRows)
#pragma unroll
        for (int c = 0; c < kChunks / kLanes; ++c) {
          const uint8* const from = tile + (first_row + step * kStep) * Tile::kPitch;
          const uint4 words = *(const uint4*)(from + 16 * (lane + kLanes * c));
          found |= nonfinite_bits(element, words.x) | nonfinite_bits(element, words.y) |
                   nonfinite_bits(element, words.z) | nonfinite_bits(element, words.w);
        }
    return (found & 0x80008000u) != 0;
  }

 private:
  template <class Source>
  __device__ static int64 along(const Source& source, int elements) {
    return kAccess == 2 ? (int64)elements * source.element : elements;
  }
  // Adding 1 to an exponent of all ones carries into the sign bit.
  __device__ static uint32 nonfinite_bits(bf16, uint32 pair) {
    return (pair & 0x7f807f80u) + 0x00800080u;
  }
  __device__ static uint32 nonfinite_bits(f16, uint32 pair) {
    return (pair & 0x7c007c00u) + 0x04000400u;
  }
  template <bool kChecked, class Source>
  __device__ static void copy_chunk(const Source& source, uint8* to, const uint16* from,
                                    int column, bool is_there) {
    if constexpr (kAccess == 2) {
      Vector<8, uint16> words;
#pragma unroll
      for (int e = 0; e < 8; ++e)
        words.words[e] =
            is_there && column + e < kDim ? from[along(source, e)] : (uint16)0;
      *(uint4*)to = words.pieces[0];
    } else {
      const int kElements = kAccess / 2;
#pragma unroll
      for (int e = 0; e < 8; e += kElements) {
        const bool is_inside = kDim == Tile::kColumns || column + e < kDim;
        if constexpr (!kChecked && kDim == Tile::kColumns)
          cp_async<kAccess>(to + 2 * e, from + e);
        else  // reads nothing where nothing is present, so that the address may be invalid
          cp_async_zfill<kAccess>(to + 2 * e, from + e, is_there && is_inside ? kAccess : 0);
      }
    }
  }
};

// Fragments of 16 rows and 16 columns; a lane passes its own row and chunk to ldmatrix.
// Operand A (rows of Q): registers 0 and 1 hold the first 8 columns of rows 0-7 and 8-15.
template <class Tile>
__device__ inline const uint8* lane_of_rows(const uint8* tile, int row) {
  const int lane = fresh_thread() % 32;
  return tile + (row + lane % 16) * Tile::kPitch + 16 * (lane / 16);
}
// Operand B from rows of K: registers 0 and 1 hold both halves of the columns of rows 0-7.
template <class Tile>
__device__ inline const uint8* lane_of_columns(const uint8* tile) {
  const int lane = fresh_thread() % 32;
  return tile + (lane / 16 * 8 + lane % 8) * Tile::kPitch + 16 * (lane / 8 % 2);
}
