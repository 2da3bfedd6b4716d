// GEMM and implicit-GEMM convolution by cp.async and mma.sync (sm_80 on):
// D[m][n] = sum over k of A[m][k] * B[n][k]. A multistage pipeline of kStages tiles of A and B in
// shared memory feeds the warps, each of which computes its part of the CTA tile. Generated code
// defines
//   OperandA, OperandB                      see sm80/loader.cuh
//   TypeA, TypeB, Accum                     operand types in shared memory; accumulator type
//   kTileM, kTileN, kTileBytes              CTA tile; bytes of K per stage
//   kWarpsM, kWarpsN, kThreads, kStages, kVariants, kProducts
//   place(args, work, row, column, at)     coordinates of a result; with kSkipsResults, the first
//                                           one is negative where there is none
//   k_extent(args, work)                   K of this variant and batch
//   epilogue<kCount>(args, at, acc)         consumes accumulators
// and this file follows lib/epilogue_rows.cuh, sm80/tile.cuh, sm80/loader.cuh and sm80/mma.cuh.
#include "lib/ptx_cp_async.cuh"
#include "sm80/operand.cuh"

static const int kTileK = kTileBytes / (int)sizeof(TypeA::Word);
static const int kSlices = kTileBytes / 32;
static const int kWarpM = kTileM / kWarpsM, kWarpN = kTileN / kWarpsN;
static const int kFragmentsM = kWarpM / 16, kFragmentsN = kWarpN / 16;
// 3xTF32: products accumulate on tensor cores within one stage, small ones apart, and are then
// added to f32 accumulators with f32 rounding.
static const bool kSplitsF32 = kProducts > 1;
typedef Accum Accumulators[kFragmentsM][2 * kFragmentsN][4];
static const int kTileBytesA = kTileM * kTileBytes;
static const int kStageBytes = kTileBytesA + kTileN * kTileBytes;

// Maps blockIdx.x to batch, variant and tile. Tiles are ordered in groups of kGroupM rows of tiles,
// so that concurrent CTAs share operands in L2.
struct TileStart {
  int row, column;
};
__device__ inline TileStart locate_tile(const Args& args, WorkTile& work) {
  const int all = (int)args.all_tiles;
  int tile = (int)blockIdx.x;
  work.batch = tile / all;
  tile -= work.batch * all;
  work.variant = 0;
#pragma unroll 1
  while (work.variant + 1 < kVariants && tile >= (int)args.first_tile[work.variant + 1])
    ++work.variant;
  tile -= (int)args.first_tile[work.variant];
  const int kGroupM = 8;
  const int high = (int)args.tiles_m[work.variant], wide = (int)args.tiles_n[work.variant];
  const int group = tile / (kGroupM * wide), rest = tile - group * (kGroupM * wide);
  const int rows = min(high - group * kGroupM, kGroupM);
  return {(group * kGroupM + rest % rows) * kTileM, rest / rows * kTileN};
}

template <bool kIsSmall>
__device__ inline void flush_accumulators(Accumulators& from, Accumulators& to) {
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kFragmentsN; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        // For infinite operands the small parts are NaN: the large products alone decide the sum.
        const Accum more = from[i][j][e];
        if (more == more || !kIsSmall) to[i][j][e] += more;
        from[i][j][e] = 0;
      }
}

template <class LoaderA, class LoaderB>
struct Mainloop {
  typedef FragmentReader<TypeA, LoaderA::kMnMajor, kTileM, false> ReaderA;
  typedef FragmentReader<TypeB, LoaderB::kMnMajor, kTileN, true> ReaderB;
  // While a K slice is multiplied, fragments of the next slice are read and the copies of the stage
  // kStages - 1 later are issued. The last slice of a stage waits for the next stage.
  __device__ static void run(const Args& args, const WorkTile& work, const TileStart& tile,
                             int warp_m, int warp_n, Accumulators& acc) {
    uint8* const shared = shared_memory();
    LoaderA load_a;
    LoaderB load_b;
    load_a.start(args, work, tile.row, (int)args.rows[work.variant]);
    load_b.start(args, work, tile.column, (int)args.columns[work.variant]);
    const int terms = max(work.k_end - work.k_begin, 0);
    const int stages = (terms + kTileK - 1) / kTileK;
#pragma unroll 1
    for (int number = 0; number < kStages - 1; ++number) {
      uint8* const place = shared + number * kStageBytes;
      if (number < stages) {
        load_a.fetch(args, work, work.k_begin + number * kTileK, place);
        load_b.fetch(args, work, work.k_begin + number * kTileK, place + kTileBytesA);
        load_a.write_smem(place);
        load_b.write_smem(place + kTileBytesA);
      }
      cp_async_commit_group();
    }
    cp_async_wait_group<kStages - 2>();
    __syncthreads();

    Accumulators of_stage = {}, small = {};  // used if kSplitsF32
    const ReaderA reader_a(warp_m * kWarpM);
    const ReaderB reader_b(warp_n * kWarpN);
    Fragment<TypeA> a[kFragmentsM];
    Fragment<TypeB> b[kFragmentsN];
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) reader_a.read(shared, i, 0, a[i]);
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) reader_b.read(shared + kTileBytesA, j, 0, b[j]);
    // The stage being multiplied, and the one being filled.
    uint8* from = shared;
    uint8* to = shared + (kStages - 1) * kStageBytes;
#pragma unroll 1
    for (int number = 0; number < stages; ++number) {
      const bool fetches = number + kStages - 1 < stages;
      const int ahead = work.k_begin + (number + kStages - 1) * kTileK;
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) {
        if (slice + 1 == kSlices) {
          if (fetches) {
            load_a.write_smem(to);
            load_b.write_smem(to + kTileBytesA);
          }
          to = from;
          from = from + kStageBytes == shared + kStages * kStageBytes ? shared : from + kStageBytes;
          cp_async_wait_group<kStages - 2>();
          __syncthreads();
        }
        if (slice == 0 && fetches) load_a.fetch(args, work, ahead, to);
        if (slice == (kSlices > 2 ? 1 : 0)) {
          if (fetches) load_b.fetch(args, work, ahead, to + kTileBytesA);
          cp_async_commit_group();
        }
        const int next = (slice + 1) % kSlices;
        mma_slice(
            a, b, kSplitsF32 ? of_stage : acc, small,
            [&](int i) { reader_a.read(from, i, next, a[i]); },
            [&](int j) { reader_b.read(from + kTileBytesA, j, next, b[j]); });
      }
      if (kSplitsF32) flush_accumulators<false>(of_stage, acc);
    }
    if (kSplitsF32) flush_accumulators<true>(small, acc);
    cp_async_wait_group<0>();
    __syncthreads();
  }
};

template <class LoaderA, class LoaderB, int kCount>
__device__ inline void gemm(const Args& args) {
  WorkTile work;
  const TileStart tile = locate_tile(args, work);
  const int depth = k_extent(args, work);
  const int per_split = (int)args.k_per_split;
  work.k_begin = (int)blockIdx.y * per_split;
  work.k_end = min(depth, work.k_begin + per_split);
  const int warp = threadIdx.x / 32, warp_m = warp / kWarpsN, warp_n = warp % kWarpsN;
  Accumulators acc = {};
  Mainloop<LoaderA, LoaderB>::run(args, work, tile, warp_m, warp_n, acc);

  uint8* const staging = shared_memory() + warp * (16 * kStagingPitch * (int)sizeof(Accum));
  const auto place_of = [&](Index row, Index(&at)[kRank]) {
    place(args, work, (int)row, (int)at[kRank - 1], at);
  };
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
    finish_rows<kWarpN, kCount, kSkipsResults != 0>(
        args, staging, (const Accum(&)[kWarpN / 2])acc[i],
        (Index)(tile.row + warp_m * kWarpM + 16 * i), (Index)args.rows[work.variant],
        (Index)(tile.column + warp_n * kWarpN), (Index)args.columns[work.variant], place_of);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_sm80(const __grid_constant__ Args args) {
  gemm<Loader<OperandA, TypeA, kTileM, OperandA::kMode>,
          Loader<OperandB, TypeB, kTileN, OperandB::kMode>, kVector>(args);
}

// Fallback for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm_sm80_elements(const __grid_constant__ Args args) {
  gemm<Loader<OperandA, TypeA, kTileM, kDirect>, Loader<OperandB, TypeB, kTileN, kDirect>, 1>(
      args);
}
