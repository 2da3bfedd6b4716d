// Tail reductions fused behind the GEMM epilogue: values that the epilogue passes to
// `tails.take<number>(values)` are reduced in registers as rows are processed, and leave the CTA as
// partial results, which tail_reduce.cuh combines in a fixed order. Requires lib/epilogue_rows.cuh
// and the generated header, which defines kTails, the number of tails of each kind (kTailsOverRows
// ...), and for each a Tail<number>, which is a fold with
//   kOver, kSlot             the axes it reduces, its index among the tails of that kind
//   partials(args)           float[parts][elements]
//   elements(args), batch(args)  strides of parts, and of batches
// The kernel defines tail_place(args, work), the position of a tile in the partials, and
// kTileWarpgroups, the warpgroups that share a tile.
#include "lib/ptx_barrier.cuh"
#include "lib/tail_folds.cuh"

struct TailPlace {
  Index batch;
  Index row_part, column_part;  // tile coordinates
  Index column, column_end;     // first column of the tile, and end of the columns
};

__device__ constexpr int one_or_more(int count) { return count > 0 ? count : 1; }

struct GemmTails {
  static const bool kAny = true, kHoldsRows = kTailsOverColumns > 0;
  typedef RowWalk<kTileN, kVector> Walk;
  // Columns of a pass, and of the tile, whose reduction a lane owns.
  static const int kKept = one_or_more(Walk::kWidth / 32), kHeld = one_or_more(kTileN / 32);

  float now[one_or_more(kTailsOverRows)][kVector];  // of the columns that a lane traverses
  float columns[one_or_more(kTailsOverRows)][kHeld];
  float rows[one_or_more(kTailsOverColumns)][Walk::kSteps];
  float all[one_or_more(kTailsOverAll)];
  TailPlace place;
  int step;  // index of the lane's current row

  __device__ GemmTails() {
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOverAll) all[tail.kSlot] = tail.identity();
    });
  }

  template <class Work>
  __device__ void begin_tile(const Args& args, const Work& work) {
    place = tail_place(args, work);
    start<kOverRows>(columns);
  }
  __device__ void begin_rows() { start<kOverColumns>(rows); }
  __device__ void begin_pass() { start<kOverRows>(now); }

  template <int kNumber>
  __device__ void take(const float (&values)[kVector]) {
    typedef Tail<kNumber> T;
#pragma unroll
    for (int l = 0; l < kVector; ++l) {
      if constexpr (T::kOver == kOverRows)
        now[T::kSlot][l] = T::apply(now[T::kSlot][l], values[l]);
      else if constexpr (T::kOver == kOverColumns)
        rows[T::kSlot][step] = T::apply(rows[T::kSlot][step], values[l]);
      else
        all[T::kSlot] = T::apply(all[T::kSlot], values[l]);
    }
  }

  // Lanes that traverse the same columns exchange partials: each ends up with the complete
  // reduction of kKept columns, from kept_column() on.
  __device__ void end_pass(int first) {
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOverRows) {
        float(&own)[kVector] = now[tail.kSlot];
        share_out<16, kVector>(tail, own);
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
          float& to = columns[tail.kSlot][first / 32 + i];
          to = tail.apply(to, own[i]);
        }
      }
    });
  }

  // The 16 rows from `row` on are complete for this tile.
  __device__ void end_rows(const Args& args, Index row, Index row_end) {
    const int lane = threadIdx.x % 32;
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOverColumns) {
        float* to = tail.partials(args) + place.column_part * tail.elements(args) +
                    place.batch * tail.batch(args);
#pragma unroll
        for (int s = 0; s < Walk::kSteps; ++s) {
          float whole = rows[tail.kSlot][s];
#pragma unroll
          for (int apart = Walk::kPerRow / 2; apart > 0; apart /= 2)
            whole = tail.apply(whole, __shfl_xor_sync(~0u, whole, apart));
          const int from = lane / Walk::kPerRow;
          const Index r = row + from + s * Walk::kRows;
          if (lane % Walk::kPerRow == 0 && from < Walk::kRows && r < row_end) to[r] = whole;
        }
      }
    });
  }

  // Combines the columns of the warps of a warpgroup. `staging`: the warp's staging buffer.
  __device__ void end_tile(const Args& args, uint8* staging, int group) {
    const int warp = threadIdx.x / 32 % 4;
    const uint8* const staging_buffers = staging - warp * kStagingBytes;
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOverRows) {
#pragma unroll
        for (int i = 0; i < kHeld; ++i)
          ((float*)staging)[i / kKept * Walk::kWidth + kept_column() + i % kKept] =
              columns[tail.kSlot][i];
        group_barrier<128>(group);
        const Index part = place.row_part * kTileWarpgroups + (kPingPong ? 0 : group);
        float* to = tail.partials(args) + part * tail.elements(args) +
                    place.batch * tail.batch(args) + place.column;
        for (int c = threadIdx.x % 128; c < kTileN && place.column + c < place.column_end;
             c += 128) {
          float whole = tail.identity();
#pragma unroll
          for (int w = 0; w < 4; ++w)
            whole = tail.apply(whole, ((const float*)(staging_buffers + w * kStagingBytes))[c]);
          to[c] = whole;
        }
        group_barrier<128>(group);
      }
    });
  }

  // After the last tile: every warp stores one partial of each full reduction.
  __device__ void end(const Args& args, int group) {
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOverAll) {
        float whole = all[tail.kSlot];
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
          whole = tail.apply(whole, __shfl_xor_sync(~0u, whole, apart));
        const int warp = group * 4 + threadIdx.x / 32 % 4;
        if (threadIdx.x % 32 == 0)
          tail.partials(args)[(Index)blockIdx.x * kConsumers * 4 + warp] = whole;
      }
    });
  }

 private:
  // Butterfly over the lanes at distance `kApart` and less, which have the same columns: each gives
  // the other one half of its kCount.
  template <int kApart, int kCount, class T>
  __device__ static void share_out(T tail, float (&own)[kVector]) {
    if constexpr (kApart >= Walk::kPerRow) {
      const bool is_upper = (threadIdx.x & kApart) != 0;
      if constexpr (kCount > 1) {
#pragma unroll
        for (int i = 0; i < kCount / 2; ++i) {
          const float kept = is_upper ? own[i + kCount / 2] : own[i];
          const float given = is_upper ? own[i] : own[i + kCount / 2];
          own[i] = tail.apply(kept, __shfl_xor_sync(~0u, given, kApart));
        }
        share_out<kApart / 2, kCount / 2>(tail, own);
      } else {
        own[0] = tail.apply(own[0], __shfl_xor_sync(~0u, own[0], kApart));
        share_out<kApart / 2, 1>(tail, own);
      }
    }
  }
  __device__ static int kept_column() {
    int column = threadIdx.x % Walk::kPerRow * kVector, count = kVector;
#pragma unroll
    for (int apart = 16; apart >= Walk::kPerRow; apart /= 2) {
      if (count > 1 && (threadIdx.x & apart) != 0) column += count / 2;
      count = count > 1 ? count / 2 : 1;
    }
    return column;
  }
  template <int kOver, int kKinds, int kCount>
  __device__ static void start(float (&numbers)[kKinds][kCount]) {
    for_each_tail<kTails>([&](auto tail) {
      if constexpr (tail.kOver == kOver) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) numbers[tail.kSlot][i] = tail.identity();
      }
    });
  }
};
