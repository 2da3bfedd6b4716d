// Products with few rows: who has which weights, and numbers of them.
//
// A step of a warp is 4 kOwn depths of its rows of the weights. Lane (g, t), g = lane / 4 and
// t = lane % 4, has kOwn of these depths, from kOwn * t on, in packets of 16 bytes (or 8):
// - packets along the depth: one of each of the rows g, g + 8, g + 16, ...,
// - packets across the depth: of kElements rows, from kElements * g on, one for each depth.
// The lanes of matrix units are these, in whatever order the depths stand: x has the same order.
#include "lib/pointwise.cuh"
#include "lib/ptx_pairs.cuh"
#include "lib/rows.cuh"

template <class D, bool kIsPacked> struct BitsIn {
  static const int value = sizeof(typename D::Word) * 8;
};
template <class D> struct BitsIn<D, true> { static const int value = D::kBits; };
static const int kBits = BitsIn<W, IsPacked<W>::value>::value;
static const int kElements = kPacketBytes * 8 / kBits;
static const int kWords = kPacketBytes / 4;
static const int kOwn = kKMajor ? kElements : kUsesMma ? 8 : 4;
static const int kPackets = kKMajor ? 2 * kTiles : kOwn;
static const int kStepK = 4 * kOwn;
static const int kWarpRows = kKMajor ? 16 * kTiles : 8 * kElements;
static_assert(kRows <= kWarpsN * kWarpRows);  // of a block; less only by warpgroups
// x in units of 16 bytes: kUnit depths of one of its rows.
static const int kUnit = kUsesMma ? 8 : 4;
static const int kUnits = kOwn / kUnit;

typedef typename Packet<kPacketBytes>::Type Piece;
union Words {
  Piece piece;
  uint32 words[kWords];
};

// Where the first packet of a lane stands, the first row of its block, and the batch.
struct Coord {
  Index first_row, row, k, batch[kRank];
};

// Scales of blocks of weights are in shared memory beside x, as numbers of type T: those of a block
// of depths for all rows of the block of threads, then those of the next.
struct Scales {
  const uint16* first;  // of the warp's first row
  Index first_group;
  __device__ uint32 pair(Index k, int row) const {
    return both(first[(int)(k / kScaleBlock - first_group) * kRows + row]);
  }
};

// Number i of a packet.
__device__ inline float element_of(const Words& packet, int i) {
  const uint32 bits = packet.words[i * kBits / 32] >> i * kBits % 32;
  if constexpr (kBits == 32)
    return __uint_as_float(bits);
  else
    return widen(W(), (typename W::Word)(bits & ((1u << kBits % 32) - 1)));
}
// kCount numbers of packet p from number `first` on, after the work before the product.
template <bool kAligned, int kCount>
__device__ inline void elements_of(const Args& args, const Coord& coord, const Words& packet, int p,
                                  int first, R (&elements)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) elements[i] = element_of(packet, first + i);
  if constexpr (kHasWeightProgram) {
    constexpr int kVector = !kAligned ? 1 : kVectorW < kCount ? kVectorW : kCount;
    const Index row = coord.row + (kKMajor ? 8 * p : first);
    const Index k = coord.k + (kKMajor ? first : p);
    Index at[kRank];
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = coord.batch[axis];
#pragma unroll
    for (int i = 0; i < kCount; i += kVector) {
      at[kRank - 2] = kKMajor ? row : k;
      at[kRank - 1] = (kKMajor ? k : row) + i;
      const bool inside = kKMajor ? row < (Index)args.n && k + i < (Index)args.k
                                 : row + i < (Index)args.n && k < (Index)args.k;
      R from[kVector], to[kVector];
#pragma unroll
      for (int l = 0; l < kVector; ++l) from[l] = elements[i + l];
      fill((R)0, to);  // zeros outside of memory might be something else after the work
      if (inside) weight_program<kVector>(args, at, from, to);
#pragma unroll
      for (int l = 0; l < kVector; ++l) elements[i + l] = to[l];
    }
  }
}
