// GEMM epilogue through shared memory: every warp transposes 16 rows of accumulators through its
// staging buffer and runs the epilogue program along rows, so that global accesses are coalesced.
// The generated header defines
//   hold<kCount>(args, at, held)     loads the program's operands, kPrefetchBytes per element
//   epilogue<kCount>(args, at, acc, held)  the program, over kRank axes, the last one along columns
//   kHeldRegisters                   registers for loaded operands
//   kVector                          contiguous columns per thread and access
//   kStagingColumns                  columns that a warp stages at a time, 32 or 64

#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/no_tails.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// Padded by 8 words: the pairs that 8 rows store are in different banks.
static const int kStagingPitch = kStagingColumns + 8;
static const int kStagingBytes = 16 * kStagingPitch * 4;  // per warp

// Reads kCount values of the staging buffer, 16 bytes at a time. Half of the lanes begin with the
// second piece, so that 8 lanes cover all banks.
template <int kCount, class Accum>
__device__ inline void read_staging(const Accum* from, Accum (&numbers)[kCount]) {
  if constexpr (kCount == 8) {
    const int turn = (threadIdx.x >> 2 & 1) * 4;
    const uint4 first = *(const uint4*)(from + turn), second = *(const uint4*)(from + (turn ^ 4));
    *(uint4*)numbers = turn == 0 ? first : second;
    *(uint4*)(numbers + 4) = turn == 0 ? second : first;
  } else if constexpr (kCount == 4 && sizeof(Accum) == 4) {
    *(uint4*)numbers = *(const uint4*)from;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) numbers[i] = from[i];
  }
}

// How the lanes of a warp traverse 16 rows of kColumns columns, of which kUsed may be results,
// kCount columns per lane: in passes over kWidth columns, with kPerRow lanes per row.
template <int kColumns, int kCount, int kUsed = kColumns>
struct RowWalk {
  static const int kMost = kStagingColumns < 32 * kCount ? kStagingColumns : 32 * kCount;
  static const int kWidth = kColumns < kMost ? kColumns : kMost;
  static const int kTaken = kUsed < kWidth ? (kUsed + kCount - 1) / kCount * kCount : kWidth;
  static const int kPerRow = kTaken / kCount, kRows = 32 / kPerRow < 16 ? 32 / kPerRow : 16;
  static const int kSteps = (16 + kRows - 1) / kRows;  // the last ones may exceed 16
};

// Passes whose operands are loaded before any result is computed, as registers allow; 0: operands
// are loaded where they are used.
template <class Walk, int kColumns, int kCount>
struct HeldPasses {
  static const int kBytes = Walk::kSteps * kCount * kPrefetchBytes, kAll = kColumns / Walk::kWidth;
  static const int kMost = kBytes == 0 ? 0 : kHeldRegisters * 4 / (kBytes > 0 ? kBytes : 1);
  static const int kNumber = kMost < kAll ? kMost : kAll;
};

// One access to shared memory.
template <class Accum>
struct alignas(2 * sizeof(Accum)) SumPair {
  Accum first, second;
};

// No residual prefetch (see lib/epilogue_tma_store.cuh).
static const bool kPrefetchesResidual = false;
template <int kColumns, class... Any>
__device__ inline void prefetch_residual_boxes(const Any&...) {}

// Epilogue of 16 rows from `row` on and kColumns columns from `column` on. The accumulators have
// the wgmma fragment layout: accum[4 j + 2 h + i] is row lane / 4 + 8 h, column 8 j + 2 (lane % 4)
// + i. Rows from `row_end` and columns from `column_end` on are skipped. Called by all lanes of the
// warp. `place(row, at)` yields the coordinates of a row (the last one holds the column); with
// kLeavesOut a negative first coordinate skips the row. kCount contiguous columns are processed at
// a time. kUsed: upper bound of the result's columns; lanes are assigned to these only. `tails` get
// the values to be reduced.
template <int kColumns, int kCount = kVector, bool kLeavesOut = false, int kUsed = kColumns,
          class Accum, class Place, class Tails>
__device__ inline void finish_rows(const Args& args, void* staging,
                                   const Accum (&accum)[kColumns / 2], Index row, Index row_end,
                                   Index column, Index column_end, Place place, Tails& tails) {
  typedef RowWalk<kColumns, kCount, Tails::kAny ? kColumns : kUsed> Walk;
  const int kWidth = Walk::kWidth, kPerRow = Walk::kPerRow, kRows = Walk::kRows,
            kSteps = Walk::kSteps;
  const int lane = threadIdx.x % 32;
  Accum* const pairs = (Accum*)staging + lane / 4 * kStagingPitch + lane % 4 * 2;
  const int first_row = lane / kPerRow, first_column = lane % kPerRow * kCount;
  const Accum* const own = (const Accum*)staging + first_row * kStagingPitch + first_column;
  const auto locate = [&](int step, Index at_column, Index(&at)[kRank]) {
    at[kRank - 1] = at_column;
    place(row + first_row + step * kRows, at);
    return !kLeavesOut || at[0] >= 0;
  };
  const auto finish = [&](int step, const Index(&at)[kRank], const Accum(&numbers)[kCount],
                          const Held<kCount>& held) {
    R acc[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) acc[i] = (R)numbers[i];
    if constexpr (Tails::kAny) {
      tails.step = step;
      epilogue<kCount>(args, at, acc, held, tails);
    } else {
      epilogue<kCount>(args, at, acc, held);
    }
  };
  const bool is_whole =
      kRows * kPerRow == 32 && row + 16 <= row_end && column + kColumns <= column_end;
  const int kHeld = HeldPasses<Walk, kColumns, kCount>::kNumber, kPlaces = kHeld > 0 ? kHeld : 1;
  Held<kCount> held[kPlaces][kSteps];
  const auto hold_pass = [&](int first) {
    Index at[kRank];
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      if (locate(step, column + first + first_column, at))
        hold<kCount>(args, at, held[first / kWidth % kPlaces][step]);
  };
  // The row of a step must be a compile-time constant where row partials are in registers.
  const int kUnroll = Tails::kHoldsRows ? kSteps : 1;
  if (is_whole) {
#pragma unroll
    for (int pass = 0; pass < kHeld; ++pass) hold_pass(pass * kWidth);
  }
  tails.begin_rows();
#pragma unroll
  for (int first = 0; first < kColumns; first += kWidth) {
    tails.begin_pass();
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Accum* pair = accum + first / 2 + 4 * j + 2 * half;
        *(SumPair<Accum>*)(pairs + 8 * half * kStagingPitch + 8 * j) = {pair[0], pair[1]};
      }
    __syncwarp();
    const Index at_column = column + first + first_column;
    Index at[kRank];
    if (is_whole) {
      Accum numbers[kSteps][kCount];
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        read_staging(own + step * kRows * kStagingPitch, numbers[step]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (!locate(step, at_column, at)) continue;
        Held<kCount>& loaded = held[first / kWidth % kPlaces][step];
        if (kHeld == 0) hold<kCount>(args, at, loaded);
        finish(step, at, numbers[step], loaded);
      }
      if (kHeld > 0 && first + kHeld * kWidth < kColumns) hold_pass(first + kHeld * kWidth);
    } else {
#pragma unroll kUnroll
      for (int step = 0; step < kSteps; ++step) {
        const int r = first_row + step * kRows;
        if (r >= 16 || row + r >= row_end || at_column >= column_end || lane >= kRows * kPerRow)
          break;
        Accum numbers[kCount];
        read_staging(own + step * kRows * kStagingPitch, numbers);
        if (!locate(step, at_column, at)) continue;
        Held<kCount> now;
        hold<kCount>(args, at, now);
        finish(step, at, numbers, now);
      }
    }
    __syncwarp();
    tails.end_pass(first);
  }
  tails.end_rows(args, row, row_end);
}
template <int kColumns, int kCount = kVector, bool kLeavesOut = false, class Accum, class Place>
__device__ inline void finish_rows(const Args& args, void* staging,
                                   const Accum (&accum)[kColumns / 2], Index row, Index row_end,
                                   Index column, Index column_end, Place place) {
  NoTails tails;
  finish_rows<kColumns, kCount, kLeavesOut>(args, staging, accum, row, row_end, column, column_end,
                                            place, tails);
}

// Before the CTA exits: no TMA store is in flight.
__device__ inline void wait_for_results() {}
