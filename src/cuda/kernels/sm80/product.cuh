// D[m][n] = sum over k of A[m][k] * B[n][k] on tensor cores (sm_80 on). Tiles of A and B wait in
// kStages places of shared memory; every warp multiplies its part of them. The head has
//   OperandA, OperandB                      see sm80/loader.cuh
//   TypeA, TypeB, Sum                       what is multiplied, and what is added up
//   kTileM, kTileN, kTileBytes              of a block; bytes of depth
//   kWarpsM, kWarpsN, kThreads, kStages, kVariants, kProducts
//   place(args, where, row, column, at)     coordinates of a result
//   depth_of(args, where)                   terms of a sum
//   epilogue<kCount>(args, at, acc)         what becomes of sums
// and stands after lib/product_rows.cuh, sm80/tile.cuh, sm80/loader.cuh and sm80/multiply.cuh.
#include "lib/ptx_async.cuh"
#include "sm80/place.cuh"

static const int kDepth = kTileBytes / (int)sizeof(TypeA::Word);
static const int kSlices = kTileBytes / 32;
static const int kWarpM = kTileM / kWarpsM, kWarpN = kTileN / kWarpsN;
static const int kFragmentsM = kWarpM / 16, kFragmentsN = kWarpN / 16;
// f32 that is not rounded: its products are added up for one stage, small ones apart, and then
// rounded like any sum of f32.
static const bool kInParts = kProducts > 1;
typedef Sum Sums[kFragmentsM][2 * kFragmentsN][4];
static const int kStageBytes = (kTileM + kTileN) * kTileBytes;

// Which tile of which variant and batch; tiles of a square of the result lie together in time, so
// that they find their operands in L2.
struct TileStart {
  int row, column;
};
__device__ inline TileStart locate_tile(const Args& args, Where& where) {
  const int all = (int)args.all_tiles;
  int tile = (int)blockIdx.x;
  where.batch = tile / all;
  tile -= where.batch * all;
  where.variant = 0;
#pragma unroll 1
  while (where.variant + 1 < kVariants && tile >= (int)args.first_tile[where.variant + 1])
    ++where.variant;
  tile -= (int)args.first_tile[where.variant];
  const int kTogetherM = 8;
  const int high = (int)args.tiles_m[where.variant], wide = (int)args.tiles_n[where.variant];
  const int group = tile / (kTogetherM * wide), rest = tile - group * (kTogetherM * wide);
  const int rows = min(high - group * kTogetherM, kTogetherM);
  return {(group * kTogetherM + rest % rows) * kTileM, rest / rows * kTileN};
}

template <bool kIsSmall>
__device__ inline void move_sums(Sums& from, Sums& to) {
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kFragmentsN; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        // Of infinity only the largest part is a number, and its products say what the sum is.
        const Sum more = from[i][j][e];
        if (more == more || !kIsSmall) to[i][j][e] += more;
        from[i][j][e] = 0;
      }
}

template <class LoaderA, class LoaderB>
struct Mainloop {
  typedef FragmentReader<TypeA, LoaderA::kMnMajor, kTileM, false> ReaderA;
  typedef FragmentReader<TypeB, LoaderB::kMnMajor, kTileN, true> ReaderB;
  struct Fragments {
    Fragment<TypeA> a[kFragmentsM];
    Fragment<TypeB> b[kFragmentsN];
  };

  __device__ static void read(const ReaderA& a, const ReaderB& b, const uint8* stage, int slice,
                              Fragments& to) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) a.read(stage, i, slice, to.a[i]);
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j)
      b.read(stage + kTileM * kTileBytes, j, slice, to.b[j]);
  }

  // A stage at a time; that kStages - 1 later is on its way meanwhile.
  __device__ static void run(const Args& args, const Where& where, const TileStart& tile, int warp_m,
                             int warp_n, Sums& sums) {
    uint8* const shared = shared_memory();
    LoaderA load_a;
    LoaderB load_b;
    load_a.start(args, where, tile.row, (int)args.rows[where.variant]);
    load_b.start(args, where, tile.column, (int)args.columns[where.variant]);
    const int depth_stages =
        where.depth_end > where.depth_begin
            ? (where.depth_end - where.depth_begin + kDepth - 1) / kDepth
            : 0;
    const auto fetch = [&](int number) {
      uint8* const stage = shared + number % kStages * kStageBytes;
      const int depth = where.depth_begin + number * kDepth;
      load_a.fetch(args, where, depth, stage);
      load_b.fetch(args, where, depth, stage + kTileM * kTileBytes);
    };
    const auto deposit = [&](int number) {
      uint8* const stage = shared + number % kStages * kStageBytes;
      load_a.deposit(stage);
      load_b.deposit(stage + kTileM * kTileBytes);
    };
#pragma unroll 1
    for (int number = 0; number < kStages - 1; ++number) {
      if (number < depth_stages) {
        fetch(number);
        deposit(number);
      }
      commit_copies();
    }
    Sums of_stage = {}, small = {};  // where kInParts
    const ReaderA reader_a(warp_m * kWarpM);
    const ReaderB reader_b(warp_n * kWarpN);
#pragma unroll 1
    for (int number = 0; number < depth_stages; ++number) {
      wait_for_copies<kStages - 2>();
      __syncthreads();
      const int next = number + kStages - 1;
      if (next < depth_stages) fetch(next);
      commit_copies();
      const uint8* const stage = shared + number % kStages * kStageBytes;
      Fragments fragments[2];
      read(reader_a, reader_b, stage, 0, fragments[0]);
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) {
        if (slice + 1 < kSlices)
          read(reader_a, reader_b, stage, slice + 1, fragments[(slice + 1) % 2]);
        multiply_slice(fragments[slice % 2].a, fragments[slice % 2].b,
                       kInParts ? of_stage : sums, small);
      }
      if (kInParts) move_sums<false>(of_stage, sums);
      if (next < depth_stages) deposit(next);
    }
    if (kInParts) move_sums<true>(small, sums);
    wait_for_copies<0>();
    __syncthreads();
  }
};

template <class LoaderA, class LoaderB, int kCount>
__device__ inline void product(const Args& args) {
  Where where;
  const TileStart tile = locate_tile(args, where);
  const int depth = depth_of(args, where);
  const int per_split = (int)args.depth_of_split;
  where.depth_begin = (int)blockIdx.y * per_split;
  where.depth_end = min(depth, where.depth_begin + per_split);
  const int warp = threadIdx.x / 32, warp_m = warp / kWarpsN, warp_n = warp % kWarpsN;
  Sums sums = {};
  Mainloop<LoaderA, LoaderB>::run(args, where, tile, warp_m, warp_n, sums);

  uint8* const slab = shared_memory() + warp * (16 * kSlabPitch * (int)sizeof(Sum));
  const auto place_of = [&](Index row, Index(&at)[kRank]) {
    place(args, where, (int)row, (int)at[kRank - 1], at);
  };
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
    finish_rows<kWarpN, kCount>(args, slab, (const Sum(&)[kWarpN / 2])sums[i],
                                (Index)(tile.row + warp_m * kWarpM + 16 * i),
                                (Index)args.rows[where.variant],
                                (Index)(tile.column + warp_n * kWarpN), (Index)args.columns[where.variant],
                                place_of);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    product_sm80(const __grid_constant__ Args args) {
  product<Loader<OperandA, TypeA, kTileM, OperandA::kMode>,
          Loader<OperandB, TypeB, kTileN, OperandB::kMode>, kVector>(args);
}

// The same for pointers that are not aligned.
extern "C" __global__ void __launch_bounds__(kThreads)
    product_sm80_elements(const __grid_constant__ Args args) {
  product<Loader<OperandA, TypeA, kTileM, kDirect>, Loader<OperandB, TypeB, kTileN, kDirect>, 1>(
      args);
}
