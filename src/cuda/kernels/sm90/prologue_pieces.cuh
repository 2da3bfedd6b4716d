// Pieces of 16 bytes that threads compute and store where the copy engine would write them. Comes
// after a kernel's head, which has kElementBytes, kBlockK, kProducers.
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

static const int kPieceElements = 16 / kElementBytes;

// Of a tile whose lines are kLine bytes long. Swizzles go by addresses: those of 128 bytes exchange
// pieces by the number of the 128 bytes they are in, modulo 8; shorter ones modulo fewer.
template <int kLine = 128>
__device__ inline uint4* piece_at(uint8* lines, int line, int piece) {
  const int swizzle = line * kLine / 128 % (kLine / 16);
  return (uint4*)(lines + line * kLine + (piece ^ swizzle) * 16);
}

// As matrix units take it; f32 to the nearest tf32, whose 13 last bits they do not look at.
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

// Pieces of a tile, some of them at a time on their way: `ask(i, asked)` loads what `make(asked)`
// makes the piece of that `store(i, piece)` puts into its place. Before the first is made `ready`
// waits for the place: the compiler does not move loads behind it, which it otherwise does with
// half of them, behind what it makes of the others (a quarter slower).
template <int kPieces, class Loaded, class Load, class Make, class Store, class Ready>
__device__ inline void fill_pieces(Load load, Make make, Store store, Ready ready) {
  const int kTogether = largest_divisor(kPieces, kProducers == 1 ? 8 : 4);  // registers allow
#pragma unroll 1
  for (int first = 0; first < kPieces; first += kTogether) {
    Loaded loaded[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) load(first + i, loaded[i]);
    if (first == 0) ready();
    uint4 pieces[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) pieces[i] = make(loaded[i]);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) store(first + i, pieces[i]);
  }
}
// The same where the compiler brings the loads of `make(i)` together: all is made before the wait.
template <int kPieces, class Make, class Store, class Ready>
__device__ inline void fill_pieces(Make make, Store store, Ready ready) {
  fill_pieces<kPieces, uint4>([&](int i, uint4& piece) { piece = make(i); },
                              [](const uint4& piece) { return piece; }, store, ready);
}
