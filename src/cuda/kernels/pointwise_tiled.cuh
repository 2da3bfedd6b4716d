// Element-wise programs on operands with different contiguous axes (transposes): square tiles pass
// through shared memory, so that every global access is vectorised and coalesced.
//
// The last axis is "columns", the one before it "rows". Operands contiguous along the rows are
// loaded in that direction and transposed in shared memory; results contiguous along the rows are
// staged in a tile and flushed at the end. The engine prints fetch_tiles, compute_tile and
// flush_tiles for kCount elements. A CTA owns kDown rows of kAcross columns; both are kEdge where
// the program uses tiles.
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"
#include "lib/tile.cuh"

// Coordinates of the first element of the CTA's tile.
__device__ inline void locate_tile(const Args& args, Index block, Index (&at)[kRank]) {
  const int64* extent = &args.extent0;
  const Index across = (Index)args.tiles_across, down = (Index)args.tiles_down;
  Index rest = block / across;
  at[kRank - 1] = (block - rest * across) * kAcross;
  block = rest;
  rest = block / down;
  at[kRank - 2] = (block - rest * down) * kDown;
#pragma unroll
  for (int axis = kRank - 3; axis >= 0; --axis) {
    const Index above = axis == 0 ? 0 : rest / (Index)extent[axis];
    at[axis] = rest - above * (Index)extent[axis];
    rest = above;
  }
}

// Loops over a tile in vectors of kCount along one direction, in which the tile has kLines lines of
// kLength: whole(first, line) for full vectors, single(at, line) per element at the tensor's edge.
template <int kCount, int kLength, int kLines, class Whole, class Single>
__device__ inline void for_runs(Index along, Index lines, Whole whole, Single single) {
  const int per_line = kLength / kCount;
#pragma unroll
  for (int i = threadIdx.x; i < kLines * per_line; i += kThreads) {
    const int line = i / per_line, first = i % per_line * kCount;
    if (line >= lines || first >= along) continue;
    if (first + kCount <= along) {
      whole(first, line);
    } else {
      for (int at = first; at < along; ++at) single(at, line);
    }
  }
}

template <int kAlongColumns, int kAlongRows>
__device__ inline void process_tile(const Args& args) {
  auto* tiles = (Tile<R, kEdge>*)shared_memory();
  Index origin[kRank];
  locate_tile(args, (Index)blockIdx.x, origin);
  const Index columns = min((Index)kAcross, (Index)(&args.extent0)[kRank - 1] - origin[kRank - 1]);
  const Index rows = min((Index)kDown, (Index)(&args.extent0)[kRank - 2] - origin[kRank - 2]);

  if (kFetches > 0) {
    for_runs<kAlongRows, kDown, kAcross>(
        rows, columns,
        [&](int row, int column) { fetch_tiles<kAlongRows>(args, origin, row, column, tiles); },
        [&](int row, int column) { fetch_tiles<1>(args, origin, row, column, tiles); });
    __syncthreads();
  }
  for_runs<kAlongColumns, kAcross, kDown>(
      columns, rows,
      [&](int column, int row) { compute_tile<kAlongColumns>(args, origin, row, column, tiles); },
      [&](int column, int row) { compute_tile<1>(args, origin, row, column, tiles); });
  if (kFlushes > 0) {
    __syncthreads();
    for_runs<kAlongRows, kDown, kAcross>(
        rows, columns,
        [&](int row, int column) { flush_tiles<kAlongRows>(args, origin, row, column, tiles); },
        [&](int row, int column) { flush_tiles<1>(args, origin, row, column, tiles); });
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pointwise_tiled(const __grid_constant__ Args args) {
  process_tile<kVector, kTransposedVector>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    pointwise_tiled_elements(const __grid_constant__ Args args) {
  process_tile<1, 1>(args);
}
