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
static const int kOwn = kAlong ? kElements : kMatrix ? 8 : 4;
static const int kPackets = kAlong ? 2 * kTiles : kOwn;
static const int kStepDepth = 4 * kOwn;
static const int kWarpRows = kAlong ? 16 * kTiles : 8 * kElements;
static_assert(kRows <= kWarpsN * kWarpRows);  // of a block; less only by warpgroups
// x in units of 16 bytes: kUnit depths of one of its rows.
static const int kUnit = kMatrix ? 8 : 4;
static const int kUnits = kOwn / kUnit;

typedef typename Packet<kPacketBytes>::Type Piece;
union Words {
  Piece piece;
  uint32 words[kWords];
};

// Where the first packet of a lane stands, the first row of its block, and the batch.
struct Place {
  Index first_row, row, depth, batch[kRank];
};

// Scales of blocks of weights are in shared memory beside x, as numbers of type T: those of a block
// of depths for all rows of the block of threads, then those of the next.
struct Scales {
  const uint16* first;  // of the warp's first row
  Index first_group;
  __device__ uint32 pair(Index depth, int row) const {
    return both(first[(int)(depth / kScaleBlock - first_group) * kRows + row]);
  }
};

// Number i of a packet.
__device__ inline float number_of(const Words& packet, int i) {
  const uint32 bits = packet.words[i * kBits / 32] >> i * kBits % 32;
  if constexpr (kBits == 32)
    return __uint_as_float(bits);
  else
    return widen(W(), (typename W::Word)(bits & ((1u << kBits % 32) - 1)));
}
// kCount numbers of packet p from number `first` on, after the work before the product.
template <bool kAligned, int kCount>
__device__ inline void numbers_of(const Args& args, const Place& place, const Words& packet, int p,
                                  int first, R (&numbers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) numbers[i] = number_of(packet, first + i);
  if constexpr (kHasWeightProgram) {
    constexpr int kVector = !kAligned ? 1 : kVectorW < kCount ? kVectorW : kCount;
    const Index row = place.row + (kAlong ? 8 * p : first);
    const Index depth = place.depth + (kAlong ? first : p);
    Index at[kRank];
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = place.batch[axis];
#pragma unroll
    for (int i = 0; i < kCount; i += kVector) {
      at[kRank - 2] = kAlong ? row : depth;
      at[kRank - 1] = (kAlong ? depth : row) + i;
      const bool inside = kAlong ? row < (Index)args.many && depth + i < (Index)args.depth
                                 : row + i < (Index)args.many && depth < (Index)args.depth;
      R from[kVector], to[kVector];
#pragma unroll
      for (int l = 0; l < kVector; ++l) from[l] = numbers[i + l];
      fill((R)0, to);  // zeros outside of memory might be something else after the work
      if (inside) weight_program<kVector>(args, at, from, to);
#pragma unroll
      for (int l = 0; l < kVector; ++l) numbers[i + l] = to[l];
    }
  }
}
