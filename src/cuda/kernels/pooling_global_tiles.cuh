// Global pooling, forward, NCHW, of floats loaded unconverted (`Element`): each warp streams tiles
// of 32 images through a cp.async pipeline of kStages stages, and every lane reduces one image.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/rows.cuh"

typedef Element::Word Word;
static const int kLanes = 32, kTile = kLanes * kPixels, kTileBytes = kTile * sizeof(Word);
static const int kPiece = 16, kPieceWords = kPiece / sizeof(Word);

__device__ inline R pooled(R a, R b) { return kMaximum ? max_or_nan(a, b) : a + b; }
__device__ inline R nothing() { return kMaximum ? -(R)infinity() : (R)0; }

// Issues this lane's copies of tile `number` of x.
__device__ inline void request_tile(const Args& args, Index number, uint8* to) {
  const Word* from = (const Word*)args.x_of_load0 + number * kTile;
  const Index left = (Index)args.elements - number * kTile;
  const int count = left < kTile ? (int)left : kTile, pieces = count / kPieceWords;
#pragma unroll
  for (int i = 0; i < (kTileBytes / kPiece + kLanes - 1) / kLanes; ++i) {
    const int piece = i * kLanes + threadIdx.x % kLanes;
    if (piece < pieces) cp_async<kPiece>(to + piece * kPiece, from + piece * kPieceWords);
  }
#pragma unroll 1
  for (int i = pieces * kPieceWords + threadIdx.x % kLanes; i < count; i += kLanes)
    ((Word*)to)[i] = from[i];
}

// Reduces image `lane` of a tile, read as 32-bit words. With an odd number of words per image,
// lanes read different banks; otherwise each lane starts at a different word.
__device__ inline R pool_image(const uint8* tile, int lane) {
  constexpr int kPerWord = 4 / sizeof(Word);
  constexpr bool kSplit = kPixels % kPerWord != 0;  // odd images start within a word
  constexpr int kWords = (kPixels + kPerWord - 1) / kPerWord;
  constexpr bool kTransposed = !kSplit && kWords % 2 == 0;
  const int first = lane * kPixels;
  const bool late = kSplit && first % kPerWord != 0;
  const uint32* words = (const uint32*)tile + first / kPerWord;
  int place = kTransposed ? lane % kWords : 0;
  R low = nothing(), high = nothing();
#pragma unroll(!kTransposed && kWords < 100 ? kWords : 4)
  for (int n = 0; n < kWords; ++n) {
    const uint32 word = words[place];
    if constexpr (kPerWord == 1) {
      low = pooled(low, widen(Element(), __uint_as_float(word)));
    } else {
      const R one = widen(Element(), (uint16)word), two = widen(Element(), (uint16)(word >> 16));
      low = pooled(low, late && n == 0 ? nothing() : one);
      high = pooled(high, kSplit && !late && n == kWords - 1 ? nothing() : two);
    }
    ++place;
    if (kTransposed && place == kWords) place = 0;
  }
  return pooled(low, high);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    pooling_global(const __grid_constant__ Args args) {
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  uint8* pipeline = shared_memory() + warp * (kStages * kTileBytes);
  const Index step = (Index)gridDim.x * (kThreads / kLanes), tiles = (Index)args.tiles;
  Index tile = (Index)blockIdx.x * (kThreads / kLanes) + warp, requested = tile;
  int free = 0, stage = 0;  // stages to fill and to read
#pragma unroll 1
  for (int i = 1;; ++i) {
    if (i >= kStages) {
      if (tile >= tiles) break;
      cp_async_wait_group<kStages - 2>();
      __syncwarp();  // all lanes have finished with the previous tile
    }
    if (requested < tiles) request_tile(args, requested, pipeline + free * kTileBytes);
    cp_async_commit_group();
    requested += step;
    free = free + 1 == kStages ? 0 : free + 1;
    if (i < kStages) continue;

    const Index at[1] = {tile * kLanes + lane};
    R values[1] = {pool_image(pipeline + stage * kTileBytes, lane)};
    stage = stage + 1 == kStages ? 0 : stage + 1;
    tile += step;
    if (!kMaximum) values[0] = quotient<kPixels>(values[0]);
    if (at[0] < (Index)args.images) epilogue<1>(args, at, values);
  }
}

// Fallback for unaligned pointers: an image per thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  const Index image[1] = {(Index)blockIdx.x * kThreads + threadIdx.x};
  if (image[0] >= (Index)args.images) return;
  R values[1] = {nothing()};
  for (int n = 0; n < kPixels; ++n) {
    const Index at[1] = {image[0] * kPixels + n};
    R x[1];
    x_of<1>(args, at, x);
    values[0] = pooled(values[0], x[0]);
  }
  if (!kMaximum) values[0] = quotient<kPixels>(values[0]);
  epilogue<1>(args, image, values);
}
