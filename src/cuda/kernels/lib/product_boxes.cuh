// What a matrix product does with its sums where the copy engine takes the results to memory: the
// program runs on sums where they are, in pairs of columns, results go to shared memory in order,
// and nobody waits for them until their place is written again. Stands in for lib/product_rows.cuh.
// Comes after a kernel's head, which has
//   epilogue<kCount>(args, at, acc, result)  the program over kRank axes, the last one along
//                                            columns, which hands back its first result
//   Result                                   the type of that: 16 or 32 bits
//   kRowBlocks                               of 64 rows of a tile, a warp has 16 rows of each
//   kBoxes    boxes of a warp, written in turns: 16 rows of 128 bytes, swizzled, which
//             args.map_results takes as (column, row)
//   kLines    or else, places of a warp for 16 rows of a tile: the copy engine takes row by row to
//             result_at(args, at), wherever that is

#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/no_tails.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/rows.cuh"

static const int kResultBytes = sizeof(Result::Word);
// A part of a warp's 16 rows: a box of them, or all columns.
static const int kPlaces = kLines > 0 ? kLines : kBoxes;
static const int kPartColumns = kLines > 0 ? kTileN : 128 / kResultBytes;
// Rows of lines are longer by 16 bytes, or by 32 of 32-bit results: no two lanes of a store meet in
// a bank.
static const int kPartPitch = kLines > 0 ? (kTileN + 8) * kResultBytes : 128;
static const int kPartBytes = 16 * kPartPitch;
static const int kSlabBytes = kPlaces * kPartBytes;  // of a warp; boxes at a multiple of 1024

// The results of a part that are the thread's: columns from `column` on, of which `sums` are the
// thread's as finish_rows has them. kWhole: no row or column is past the end.
template <bool kWhole, class Sum>
__device__ inline void fill_part(const Args& args, uint8* part, const Sum* sums,
                                 Index (&at)[2][kRank], Index rows_left, Index column,
                                 Index column_end) {
  const int lane = threadIdx.x % 32, row = lane / 4, within = lane % 4 * 2 * kResultBytes;
  // Pieces of 16 bytes of row r of a box lie at the piece's number xor r % 8: of 16-bit results 8
  // rows store to all banks. Those of 32 bits store two pieces of 4 rows at a time, and rows 2 i
  // and 2 i + 1 would meet; so odd rows store columns first that even ones store later.
  const int kTurn = kLines == 0 && kResultBytes == 4 ? 2 : 0, turn = (row & 1) * kTurn;
  const int place = row * kPartPitch + (kLines > 0 ? within : within ^ row * 16);
#pragma unroll
  for (int j = 0; j < kPartColumns / 8; ++j) {
    const int own = j ^ turn, bytes = own * 8 * kResultBytes;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Sum *pair = sums + 4 * j + 2 * half, *other = sums + 4 * (j ^ kTurn) + 2 * half;
      Index(&here)[kRank] = at[half];
      here[kRank - 1] = column + 8 * own + lane % 4 * 2;
      if (!kWhole && (row + 8 * half >= rows_left || here[kRank - 1] >= column_end)) continue;
      R acc[2] = {(R)(turn == 0 ? pair[0] : other[0]), (R)(turn == 0 ? pair[1] : other[1])};
      R result[2];
      epilogue<2>(args, here, acc, result);
      const Vector<2, Result::Word> words = narrow_vector(Result(), result);
      uint8* to = part + half * 8 * kPartPitch + (kLines > 0 ? place + bytes : place ^ bytes);
      *(typename Vector<2, Result::Word>::Piece*)to = words.pieces[0];
    }
  }
}

// Asks for 16 rows from `row` on and kPartColumns columns from `column` on to be stored. A template
// of the arguments, which have either a map or the place of an element.
template <class A, class Place>
__device__ inline void store_part(const A& args, const uint8* part, Index row, Index row_end,
                                  Index column, Index column_end, Place place) {
  const int lane = threadIdx.x % 32;
  if constexpr (kLines > 0) {
    if (lane < 16 && row + lane < row_end && column < column_end) {
      Index at[kRank];
      at[kRank - 1] = column;
      place(row + lane, at);
      const Index left = column_end - column;
      store_bytes(result_at(args, at), part + lane * kPartPitch,
                  (int)(left < kPartColumns ? left : kPartColumns) * kResultBytes);
    }
    commit_stores();
  } else if (lane == 0) {
    if (row < row_end && column < column_end)
      store_box<2>(args.map_results, part, {(int)column, (int)row});
    commit_stores();
  }
}
// Until all parts but kPending have been read. The threads that ask are those that wait.
template <int kPending>
__device__ inline void wait_for_parts() {
  if (kLines > 0 || threadIdx.x % 32 == 0) wait_for_stores_to_read<kPending>();
}

// As in lib/product_rows.cuh; no row is left out, nothing is reduced, and of boxes the columns' end
// is the tensor's.
template <int kColumns, int kCount = 2, bool kLeavesOut = false, int kUsed = kColumns, class Sum,
          class Place>
__device__ inline void finish_rows(const Args& args, void* slab, const Sum (&sums)[kColumns / 2],
                                   Index row, Index row_end, Index column, Index column_end,
                                   Place place, NoTails&) {
  static_assert(!kLeavesOut && kColumns % kPartColumns == 0);
  const int kParts = kColumns / kPartColumns;
  // Each of the places in turn, where rows have a single part as well.
  static_assert(kParts % kPlaces == 0 || (kParts == 1 && kPlaces == kRowBlocks));
  const int first_place = kParts % kPlaces == 0 ? 0 : (int)(row / 64) % kPlaces;
  const int lane = threadIdx.x % 32;
  const bool is_whole = row + 16 <= row_end && column + kColumns <= column_end;
  Index at[2][kRank];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    at[half][kRank - 1] = column;
    place(row + lane / 4 + 8 * half, at[half]);
  }
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    uint8* const part = (uint8*)slab + (first_place + p) % kPlaces * kPartBytes;
    const Index first = column + p * kPartColumns;
    wait_for_parts<kPlaces - 1>();
    __syncwarp();
    const Sum* const of_part = sums + p * (kPartColumns / 2);
    if (is_whole)
      fill_part<true>(args, part, of_part, at, 16, first, column_end);
    else
      fill_part<false>(args, part, of_part, at, row_end - row, first, column_end);
    fence_shared_writes();
    __syncwarp();
    store_part(args, part, row, row_end, first, column_end, place);
  }
}

// Before a block ends: the copy engine has read its shared memory.
__device__ inline void wait_for_results() { wait_for_parts<0>(); }
