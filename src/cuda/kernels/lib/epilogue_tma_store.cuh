// GEMM epilogue with TMA stores: the epilogue program runs on the accumulator fragments in place,
// two columns at a time; results go to swizzled subtiles in the warp's staging buffers, and TMA
// stores them. A warp waits for a store only before it overwrites its buffer. Alternative to
// lib/epilogue_rows.cuh. The generated header defines
//   epilogue<kCount>(args, at, acc, result)  the program over kRank axes, the last one along
//                                            columns; returns its first result
//   Result                                   element type of that result: 16 or 32 bits
//   kStoreBuffers                            staging buffers of a warp, used round-robin
//   kRowBlocks                               blocks of 64 rows; a warp has 16 rows of each
//   args.map_results                         (column, row): boxes of 16 rows x 128 bytes, swizzled
//   kHasResidual                             whether the program reads a residual tensor of the
//                                            result's shape and element width, at
//                                            residual_address0(args, at). It is loaded into the
//                                            staging buffers before the results replace it;
//                                            take(from, held) reads it there, and epilogue has a
//                                            parameter `held`. Rows of tiles then begin at
//                                            multiples of 64 kRowBlocks
//   kResidualStages                          not 0: TMA loads the residual to pipeline stages
//                                            instead (sm90/residual_prefetch.cuh)

#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/no_tails.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/rows.cuh"

static const int kResultBytes = sizeof(Result::Word);
static const int kSubtileColumns = 128 / kResultBytes;  // per subtile
static const int kSubtileBytes = 16 * 128;                // of one subtile
static const int kStagingBytes = kStoreBuffers * kSubtileBytes;     // per warp, aligned to 1024

// Offset in a subtile of piece i of a lane: 16 bytes of row i * 4 + lane / 8.
__device__ inline int residual_offset(int i) {
  const int lane = threadIdx.x % 32, r = i * 4 + lane / 8;
  return r * 128 + (lane % 8 ^ r % 8) * 16;
}

// Visits the residual of a subtile: use(i, offset in the subtile, global address) for the 16 bytes
// of each of the 4 rows that a lane loads.
template <class A, class Place, class Use>
__device__ inline void visit_residual(const A& args, Place place, Index row, Index row_end,
                                     Index column, Index column_end, Use use) {
  const int lane = threadIdx.x % 32;
  Index at[kRank];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = i * 4 + lane / 8;
    at[kRank - 1] = column + lane % 8 * (16 / kResultBytes);
    if (row + r >= row_end || at[kRank - 1] >= column_end) continue;
    place(row + r, at);
    use(i, residual_offset(i), (const uint4*)residual_address0(args, at));
  }
}

// The subtiles of a warp are numbered row block by row block. The residual of the first
// kStoreBuffers of them is prefetched during the mainloop by this function. That of the others
// passes through registers, kBoxesAhead subtiles ahead.
static const bool kPrefetchesResidual = kHasResidual && kResidualStages == 0;
static const int kBoxesAhead = kRowBlocks > 1 ? 1 : 2;  // as registers allow
template <int kColumns, class A, class Place>
__device__ inline void prefetch_residual_boxes(const A& args, uint8* staging, Index row,
                                               Index row_end, Index column, Index column_end,
                                               Place place) {
  if constexpr (kPrefetchesResidual) {
    const int kOfRows = kColumns / kSubtileColumns;
    if (threadIdx.x % 32 == 0) tma_store_wait_read<0>();
    __syncwarp();
#pragma unroll
    for (int n = 0; n < kStoreBuffers; ++n)
      visit_residual(args, place, row + n / kOfRows * 64, row_end,
                    column + n % kOfRows * kSubtileColumns, column_end,
                    [&](int, int to, const uint4* from) {
                      cp_async<16>(staging + n * kSubtileBytes + to, from);
                    });
    cp_async_commit_group();
  }
}
struct ResidualRegisters {
  uint4 pieces[4];

  template <class A, class Place>
  __device__ void load(const A& args, Place place, Index row, Index row_end, Index column,
                       Index column_end) {
    visit_residual(args, place, row, row_end, column, column_end,
                  [&](int i, int, const uint4* from) { pieces[i] = load_once(from); });
  }
  __device__ void lay_down(uint8* box) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) *(uint4*)(box + residual_offset(i)) = pieces[i];
  }
};

// The epilogue program for two columns.
template <class A>
__device__ inline void finish_pair(const A& args, const Index (&at)[kRank], R (&acc)[2],
                                   const Held<2>& held, R (&result)[2]) {
  if constexpr (kHasResidual)
    epilogue<2>(args, at, acc, held, result);
  else
    epilogue<2>(args, at, acc, result);
}

// The pairs of columns of a subtile that a lane has in its accumulator fragment: pair i has two of
// columns 8 j to 8 j + 7 in row lane / 4, or 8 rows below, with i = 2 j + half.
struct LanePairs {
  static const int kCount = kSubtileColumns / 4;
  // The 16-byte pieces of row r are xored with r % 8. With 16-bit results 8 rows cover all banks.
  // 32-bit results store two pieces of 4 rows at a time, and rows 2 i and 2 i + 1 would conflict,
  // so odd rows store their columns in another order.
  static const int kTurn = kResultBytes == 4 ? 2 : 0;
  int row = threadIdx.x % 32 / 4, turn = (row & 1) * kTurn;
  int place = row * 128 + ((int)threadIdx.x % 4 * 2 * kResultBytes ^ row * 16);

  // Address in subtile `number` of `boxes`; the same address registers serve all subtiles and
  // halves.
  template <class Byte>
  __device__ Byte* in_box(Byte* boxes, int number, int i) const {
    return boxes + (place ^ (i / 2 ^ turn) * 8 * kResultBytes) +
           (number * kSubtileBytes + i % 2 * 1024);
  }
  // Relative to the lane's first column.
  __device__ int column(int i) const { return 8 * (i / 2 ^ turn); }
};

// In tiles that lie fully inside the result, the residual in pipeline stages is read one subtile
// ahead; that of the first subtile before the accumulators are complete.
typedef Held<2> HeldPairs[LanePairs::kCount];
template <bool kWhole>
struct ReadsResidualAhead {
  static const bool kValue = kWhole && kResidualStages > 0;
};
__device__ inline void read_residual_box(const LanePairs& pairs, const uint8* residual,
                                         HeldPairs& held) {
#pragma unroll
  for (int i = 0; i < LanePairs::kCount; ++i) take(pairs.in_box(residual, 0, i), held[i]);
}

// The thread's part of subtile `box`: kSubtileColumns columns from `column` on; `accum` are the
// thread's accumulators in the layout of finish_rows. The residual is in `ahead`, or in subtile
// `residual_box` of `residual`. kWhole: no row or column is out of bounds. kChunk pairs are
// loaded before any is stored, because the two warps of a scheduler do not hide the latency of a
// load per pair.
template <bool kWhole, class Accum>
__device__ inline void fill_subtile(const Args& args, const LanePairs& pairs, uint8* staging,
                                    int box, const uint8* residual, int residual_box,
                                    const HeldPairs& ahead, const Accum* accum,
                                    Index (&at)[2][kRank], Index rows_left, Index column,
                                    Index column_end) {
  const Index own_column = column + (int)threadIdx.x % 4 * 2;
  const auto is_there = [&](int i) {
    return kWhole ||
           (pairs.row + i % 2 * 8 < rows_left && own_column + pairs.column(i) < column_end);
  };
  const int kChunk = kWhole ? LanePairs::kCount / kRowBlocks : 2;  // as registers allow
#pragma unroll
  for (int first = 0; first < LanePairs::kCount; first += kChunk) {
    Held<2> held[kChunk];
    if constexpr (kHasResidual) {
#pragma unroll
      for (int n = 0; n < kChunk; ++n) {
        if constexpr (ReadsResidualAhead<kWhole>::kValue)
          held[n] = ahead[first + n];
        else if (is_there(first + n))
          take(pairs.in_box(residual, residual_box, first + n), held[n]);
      }
    }
    Vector<2, Result::Word> words[kChunk];
#pragma unroll
    for (int n = 0; n < kChunk; ++n) {
      const int i = first + n;
      if (!is_there(i)) continue;
      const Accum *pair = accum + 2 * i, *other = accum + 2 * (i ^ 2 * LanePairs::kTurn);
      at[i % 2][kRank - 1] = own_column + pairs.column(i);
      R acc[2] = {(R)(pairs.turn == 0 ? pair[0] : other[0]),
                  (R)(pairs.turn == 0 ? pair[1] : other[1])};
      R result[2];
      finish_pair(args, at[i % 2], acc, held[n], result);
      words[n] = narrow_vector(Result(), result);
    }
#pragma unroll
    for (int n = 0; n < kChunk; ++n)
      if (is_there(first + n))
        *(typename Vector<2, Result::Word>::Piece*)pairs.in_box(staging, box, first + n) =
            words[n].pieces[0];
  }
}

// What finish_rows gets besides the row index: the warp's staging buffers, if the accumulators are
// complete; otherwise SubtileRows (sm90/mainloop.cuh), which can wait for them and knows whether
// the tile lies fully inside the result.
__device__ inline uint8* boxes_of(uint8* rows) { return rows; }
__device__ inline void wait_for_sums(uint8*) {}
__device__ inline bool is_whole(uint8*, bool is) { return is; }
template <class Rows>
__device__ inline uint8* boxes_of(const Rows& rows) {
  return rows.boxes;
}
template <class Rows>
__device__ inline void wait_for_sums(const Rows& rows) {
  rows.wait();
}

template <class Rows>
__device__ inline constexpr bool is_whole(const Rows&, bool) {
  return Rows::kWhole;
}

// All subtiles of 16 rows, with the arguments of finish_rows.
template <bool kWhole, int kColumns, class Rows, class Accum, class Place>
__device__ inline void epilogue_subtiles(const Args& args, const Rows& rows, uint8* staging,
                                    const Accum (&accum)[kColumns / 2], Index (&at)[2][kRank],
                                    Index row, Index row_end, Index column, Index column_end,
                                    Place place) {
  const int kOfRows = kColumns / kSubtileColumns;
  const int first_number = (int)(row / 64) % kRowBlocks * kOfRows;
  const int lane = threadIdx.x % 32;
  // Warp-uniform for the compiler; the lanes' own stores need per-lane registers.
  const uint8* const same_staging = (const uint8*)__shfl_sync(~0u, (uint64)staging, 0);
  ResidualRegisters residual[kBoxesAhead];
  const auto load_ahead = [&](int b) {
    if constexpr (kPrefetchesResidual) {
      if (b < kOfRows && first_number + b >= kStoreBuffers)
        residual[b % kBoxesAhead].load(args, place, row, row_end, column + b * kSubtileColumns,
                                      column_end);
    }
  };
#pragma unroll
  for (int b = 0; b < kBoxesAhead; ++b) load_ahead(b);
  if constexpr (kPrefetchesResidual) cp_async_wait_group<0>();
  // Whether a staging buffer is reused: the lane that issues the store of a subtile waits for the
  // buffer of the next.
  const auto is_used = [&](int b) {
    return !kPrefetchesResidual || first_number + b >= kStoreBuffers;
  };
  if (is_used(0) && lane == 0) tma_store_wait_read<kStoreBuffers - 1>();
  const LanePairs pairs;
  HeldPairs ahead;
  if constexpr (ReadsResidualAhead<kWhole>::kValue) read_residual_box(pairs, rows.at(0), ahead);
  wait_for_sums(rows);
#pragma unroll
  for (int b = 0; b < kOfRows; ++b) {
    const int number = (first_number + b) % kStoreBuffers;
    const Index first = column + b * kSubtileColumns;
    __syncwarp();
    if constexpr (kPrefetchesResidual) {
      if (is_used(b)) residual[b % kBoxesAhead].lay_down(staging + number * kSubtileBytes);
      load_ahead(b + kBoxesAhead);
      __syncwarp();
    }
    const Accum* const of_box = accum + b * (kSubtileColumns / 2);
    const uint8* from = staging;
    if constexpr (kResidualStages > 0 && !kWhole) from = rows.at(b);
    fill_subtile<kWhole>(args, pairs, staging, number, from, kResidualStages > 0 ? 0 : number,
                         ahead, of_box, at, row_end - row, first, column_end);
    if constexpr (ReadsResidualAhead<kWhole>::kValue)
      if (b + 1 < kOfRows) read_residual_box(pairs, rows.at(b + 1), ahead);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      if (kWhole || (row < row_end && first < column_end))
        store_box<2>(args.map_results, same_staging + number * kSubtileBytes,
                     {(int)first, (int)row});
      tma_store_commit_group();
      if (b + 1 < kOfRows && is_used(b + 1)) tma_store_wait_read<kStoreBuffers - 1>();
    }
    if constexpr (kResidualStages > 0) rows.has_read(b);
  }
}

// As in lib/epilogue_rows.cuh, but no row is skipped, nothing is reduced, and `column_end` is the
// end of the tensor.
template <int kColumns, int kCount = 2, bool kLeavesOut = false, int kUsed = kColumns, class Rows,
          class Accum, class Place>
__device__ inline void finish_rows(const Args& args, const Rows& rows,
                                   const Accum (&accum)[kColumns / 2], Index row, Index row_end,
                                   Index column, Index column_end, Place place, NoTails&) {
  static_assert(!kLeavesOut && kColumns % kSubtileColumns == 0);
  const int kOfRows = kColumns / kSubtileColumns;
  // Staging buffers are used round-robin by the number of the subtile.
  static_assert(kOfRows % kStoreBuffers == 0 || (kOfRows == 1 && kStoreBuffers == kRowBlocks));
  uint8* const staging = boxes_of(rows);
  const int lane = threadIdx.x % 32;
  Index at[2][kRank];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    at[half][kRank - 1] = column;
    place(row + lane / 4 + 8 * half, at[half]);
  }
  // Two copies of the code: most tiles need no bounds checks.
  if (is_whole(rows, row + 16 <= row_end && column + kColumns <= column_end))
    epilogue_subtiles<true, kColumns>(args, rows, staging, accum, at, row, row_end, column,
                                      column_end, place);
  else
    epilogue_subtiles<false, kColumns>(args, rows, staging, accum, at, row, row_end, column,
                                       column_end, place);
}

// Before the CTA exits: TMA has read its staging buffers.
__device__ inline void wait_for_results() {
  if (threadIdx.x % 32 == 0) tma_store_wait_read<0>();
}
