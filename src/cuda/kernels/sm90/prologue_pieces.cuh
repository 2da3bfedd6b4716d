// 16-byte pieces that producer threads compute and store in the swizzled layout of TMA. Requires
// the generated header (kElementBytes, kBlockK, kProducers).
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

static const int kPieceElements = 16 / kElementBytes;

// Address of a piece in a tile with lines of kLine bytes. The swizzle is a function of the address:
// with 128-byte lines the piece index is xored with the index of the 128 bytes modulo 8, with
// shorter lines modulo fewer.
template <int kLine = 128>
__device__ inline uint4* piece_at(uint8* lines, int line, int piece) {
  const int swizzle = line * kLine / 128 % (kLine / 16);
  return (uint4*)(lines + line * kLine + (piece ^ swizzle) * 16);
}

// Converts to the wgmma operand type; f32 is rounded to nearest tf32, whose low 13 bits the tensor
// core ignores.
template <class Math>
__device__ inline uint4 narrow_piece(const R (&values)[kPieceElements]) {
  Vector<kPieceElements, typename Math::Word> words = narrow_vector(Math(), values);
  if constexpr (kElementBytes == 4) {
#pragma unroll
    for (int i = 0; i < kPieceElements; ++i)
      if (words.words[i] == words.words[i])
        words.words[i] = __uint_as_float(__float_as_uint(words.words[i]) + 0x1000u);
  }
  return words.pieces[0];
}

constexpr int largest_divisor(int number, int most) {
  return number % most == 0 ? most : largest_divisor(number, most - 1);
}

// Fills a tile piece by piece with several loads in flight: `load(i, loaded)` issues the loads of a
// piece, `make(loaded)` computes it, `store(i, piece)` stores it. `ready` waits for the stage after
// the first loads: it also keeps the compiler from sinking half of the loads below the computation
// of the others, which was a quarter slower.
template <int kPieces, class Loaded, class Load, class Make, class Store, class Ready>
__device__ inline void fill_pieces(Load load, Make make, Store store, Ready ready) {
  const int kChunk = largest_divisor(kPieces, kProducers == 1 ? 8 : 4);  // as registers allow
#pragma unroll 1
  for (int first = 0; first < kPieces; first += kChunk) {
    Loaded loaded[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) load(first + i, loaded[i]);
    if (first == 0) ready();
    uint4 pieces[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) pieces[i] = make(loaded[i]);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) store(first + i, pieces[i]);
  }
}
// For cases where the compiler groups the loads of `make(i)` itself: everything is computed before
// the wait.
template <int kPieces, class Make, class Store, class Ready>
__device__ inline void fill_pieces(Make make, Store store, Ready ready) {
  fill_pieces<kPieces, uint4>([&](int i, uint4& piece) { piece = make(i); },
                              [](const uint4& piece) { return piece; }, store, ready);
}
