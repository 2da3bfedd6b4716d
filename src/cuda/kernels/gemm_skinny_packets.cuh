// Skinny GEMM: the mapping of weights to lanes, and the decoding of packets.
//
// A step of a warp is 4 * kOwn elements of K of its rows of weights. Lane (g, t), g = lane / 4 and
// t = lane % 4, owns kOwn of them, from kOwn * t on, in packets of 16 bytes or less:
// - K-major weights: one packet of each of the rows g, g + 8, g + 16, ...
// - N-major weights: for each k one packet of kElements rows, from kElements * g on.
// This is the lane layout of mma.sync up to a permutation of K, which x shares.
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
static_assert(kRows <= kWarpsN * kWarpRows);  // less only in the warpgroup kernel
// x is moved in 16-byte units: kUnit elements along K of one row.
static const int kUnit = kUsesMma ? 8 : 4;
static const int kUnits = kOwn / kUnit;

typedef typename Packet<kPacketBytes>::Type Piece;
union Words {
  Piece piece;
  uint32 words[kWords];
};

// Row and k of the lane's first packet, the first row of its CTA, and the batch coordinates.
struct Coord {
  Index first_row, row, k, batch[kRank];
};

// Block scales of the weights in shared memory, converted to type T: [K block][row of the CTA].
struct Scales {
  const uint16* first;  // of the warp's first row
  Index first_group;
  __device__ uint32 pair(Index k, int row) const {
    return both(first[(int)(k / kScaleBlock - first_group) * kRows + row]);
  }
};

// Element i of a packet.
__device__ inline float element_of(const Words& packet, int i) {
  const uint32 bits = packet.words[i * kBits / 32] >> i * kBits % 32;
  if constexpr (kBits == 32)
    return __uint_as_float(bits);
  else
    return widen(W(), (typename W::Word)(bits & ((1u << kBits % 32) - 1)));
}
// kCount elements of packet p from element `first` on, after the prologue of the weights.
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
      fill((R)0, to);  // out of bounds the operand is 0, whatever the prologue makes of 0
      if (inside) weight_program<kVector>(args, at, from, to);
#pragma unroll
      for (int l = 0; l < kVector; ++l) elements[i + l] = to[l];
    }
  }
}
