// What a matrix product does with its sums: every warp brings 16 rows of them into order in shared
// memory and walks the rows with the epilogue program. Comes after a kernel's head, which has
//   epilogue<kCount>(args, at, acc)  the program, over kRank axes, the last one along columns
//   kVector                          neighbouring columns a thread takes at a time
//   kSlabColumns                     columns that a warp puts in order at a time, 32 or 64

#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// 8 words more than columns: the pairs that 8 rows store lie in different banks.
static const int kSlabPitch = kSlabColumns + 8;
static const int kSlabBytes = 16 * kSlabPitch * 4;  // of a warp

// kCount numbers of a slab, 16 bytes at a time. Half of the lanes begin with the second piece, so
// that 8 lanes read all banks.
template <int kCount, class Sum>
__device__ inline void read_slab(const Sum* from, R (&values)[kCount]) {
  Sum numbers[kCount];
  if constexpr (kCount == 8) {
    const int turn = (threadIdx.x >> 2 & 1) * 4;
    const uint4 first = *(const uint4*)(from + turn), second = *(const uint4*)(from + (turn ^ 4));
    *(uint4*)numbers = turn == 0 ? first : second;
    *(uint4*)(numbers + 4) = turn == 0 ? second : first;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) numbers[i] = from[i];
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = (R)numbers[i];
}

// The sums of 16 rows from `row` on and kColumns columns from `column` on, as matrix units leave
// them: sums[4 j + 2 h + i] is row lane / 4 + 8 h, column 8 j + 2 (lane % 4) + i. Rows from
// `row_end` and columns from `column_end` on are left out. All lanes of the warp come here.
// `place(row, at)` gives the coordinates of a row; it finds the column in the last of them, and may
// leave a row out by a first one below 0. kCount neighbouring columns are taken at a time.
template <int kColumns, int kCount = kVector, class Sum, class Place>
__device__ inline void finish_rows(const Args& args, void* slab, const Sum (&sums)[kColumns / 2],
                                   Index row, Index row_end, Index column, Index column_end,
                                   Place place) {
  const int kMost = kSlabColumns < 32 * kCount ? kSlabColumns : 32 * kCount;
  const int kWidth = kColumns < kMost ? kColumns : kMost;
  const int kPerRow = kWidth / kCount, kRows = 32 / kPerRow < 16 ? 32 / kPerRow : 16;
  const int lane = threadIdx.x % 32;
  Sum* const pairs = (Sum*)slab + lane / 4 * kSlabPitch + lane % 4 * 2;
#pragma unroll
  for (int first = 0; first < kColumns; first += kWidth) {
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Sum* pair = sums + first / 2 + 4 * j + 2 * half;
        Sum* to = pairs + 8 * half * kSlabPitch + 8 * j;
        to[0] = pair[0];
        to[1] = pair[1];
      }
    __syncwarp();
#pragma unroll 2
    for (int r = 0; r < 16; r += kRows) {
      const int in_slab = r + lane / kPerRow, at_column = lane % kPerRow * kCount;
      Index at[kRank];
      at[kRank - 1] = column + first + at_column;
      if (row + in_slab < row_end && at[kRank - 1] < column_end && lane < kRows * kPerRow) {
        R acc[kCount];
        read_slab((const Sum*)slab + in_slab * kSlabPitch + at_column, acc);
        place(row + in_slab, at);
        if (at[0] >= 0) epilogue<kCount>(args, at, acc);
      }
    }
    __syncwarp();
  }
}
