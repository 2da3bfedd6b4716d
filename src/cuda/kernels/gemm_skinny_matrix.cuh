// The products of a step by matrix units: weights are the 16 rows, straight from registers, x the 8
// columns.
#include "lib/ptx_mma.cuh"
#include "lib/short_weights.cuh"

static const int kRowTiles = kAlong ? kTiles : kElements / 2;
static const int kFewTiles = (kFew + 7) / 8;
// Pairs that a word becomes: of its numbers j and j + kPairs, or of neighbours.
static const int kPairs = kRaw ? 16 / kBits : 1;
static const bool kNeighbours = kRaw && PairsOfNeighbours<W>::value;
static const int kUnitWords = kBits / 4;  // of a packet along the depth
static const bool kScalesPairs = kScaled && !kByRows;  // else the sums of a step
static const bool kHasOffset = kKeepsOffset && kRaw && kAlong && HasOffset<W>::value;
static const bool kMarksOdd = kRaw && HasOddBytes<W>::value;

// Units of x stand in the order of the weights' pairs. `unit` has pairs of neighbours.
__device__ inline uint4 in_order_of_weights(uint4 unit) {
  if constexpr (kAlong && kPairs == 2 && !kNeighbours)
    return make_uint4(__byte_perm(unit.x, unit.y, 0x5410), __byte_perm(unit.x, unit.y, 0x7632),
                      __byte_perm(unit.z, unit.w, 0x5410), __byte_perm(unit.z, unit.w, 0x7632));
  if constexpr (kAlong && kPairs == 4)
    return make_uint4(__byte_perm(unit.x, unit.z, 0x5410), __byte_perm(unit.x, unit.z, 0x7632),
                      __byte_perm(unit.y, unit.w, 0x5410), __byte_perm(unit.y, unit.w, 0x7632));
  return unit;
}
static const bool kReorders = kAlong && kPairs > 1 && !kNeighbours;

__device__ inline uint4 unit_of(const R (&numbers)[kUnit]) {
  return in_order_of_weights(make_uint4(
      narrow_pair(T(), numbers[0], numbers[1]), narrow_pair(T(), numbers[2], numbers[3]),
      narrow_pair(T(), numbers[4], numbers[5]), narrow_pair(T(), numbers[6], numbers[7])));
}

// Sums of products of x alone with the offset of weights, of which all rows have the same.
struct OffsetSums {
  float sums[kFewTiles][4];
  __device__ OffsetSums() {
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) fill(0.f, sums[j]);
  }
  __device__ void add(const uint4 (&few)[kFewTiles]) {
    const uint32 offset = offset_pair<T>(W()), a[4] = {offset, offset, offset, offset};
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) {
      const uint32 first[2] = {few[j].x, few[j].y}, second[2] = {few[j].z, few[j].w};
      multiply_add(T(), sums[j], a, first);
      multiply_add(T(), sums[j], a, second);
    }
  }
  // `before`, or NaN if a sum is infinity or NaN, from which nothing can be taken away.
  __device__ float or_lost(float before) const {
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) before = fmaf(sums[j][0] + sums[j][1], 0.f, before);
    return before;
  }
};

struct Products {
  // Row tile i has rows 16 i + g and 16 i + 8 + g of the warp, or kElements g + 2 i and the next.
  float sums[kRowTiles][kFewTiles][4];
  uint32 odd[kAlong ? kPackets : kWords];  // marks what makes a row NaN

  __device__ Products() {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kFewTiles; ++j) fill(0.f, sums[i][j]);
    fill(0u, odd);
  }

  // x(u, m): unit u of the lane's depths of row m, in the order of the weights.
  template <bool kAligned, class X>
  __device__ void add(const Args& args, const Place& place, const Words (&packets)[kPackets],
                      const X& x, const Scales& scales) {
    OffsetSums none;
    add<kAligned, false>(args, place, packets, x, scales, none);
  }
  // kOffset: weights are more by their offset, whose products with x are added to `offset`.
  template <bool kAligned, bool kOffset, class X>
  __device__ void add(const Args& args, const Place& place, const Words (&packets)[kPackets],
                      const X& x, const Scales& scales, OffsetSums& offset) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      uint4 few[kFewTiles];
#pragma unroll
      for (int j = 0; j < kFewTiles; ++j) {
        const int m = kFew % 8 == 0 ? 8 * j + g : min(8 * j + g, kFew - 1);
        few[j] = x(u, m);
      }
      if constexpr (kOffset) offset.add(few);
      if constexpr (kAlong)
        add_along<kAligned, kOffset>(args, place, packets, u, few, scales);
      else
        add_across<kAligned>(args, place, packets, few, scales);
    }
  }

  // Adds the sums of a step, less those of the offset, whose weights have a scale: scale(packet,
  // row of the warp).
  template <class Scale>
  __device__ void add_scaled(const Products& step, const OffsetSums& offset, const Scale& scale) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = scale(2 * i + half, 16 * i + 8 * half + g);
#pragma unroll
        for (int j = 0; j < kFewTiles; ++j)
#pragma unroll
          for (int v = 2 * half; v < 2 * half + 2; ++v)
            sums[i][j][v] =
                fmaf(step.sums[i][j][v] - offset.sums[j][v % 2], factor, sums[i][j][v]);
      }
    if constexpr (kMarksOdd) {
#pragma unroll
      for (int p = 0; p < kPackets; ++p) odd[p] |= step.odd[p];
    }
  }

  // Before sums are visited.
  __device__ void finish() {
    if constexpr (kMarksOdd) spread_odd();
  }
  // Visits each sum: use(row of the warp, row of x, sum).
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kFewTiles; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const int m = 8 * j + 2 * t + v % 2, half = v / 2;
          const int row = kAlong ? 16 * i + 8 * half + g : kElements * g + 2 * i + half;
          if (m < kFew) use(row, m, sums[i][j][v]);
        }
  }

 private:
  __device__ static void scale_pairs(uint32 (&pairs)[4], uint32 scale) {
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j] = fma_pair(T(), pairs[j], scale, kMinus);
  }
  __device__ void multiply(int tile, const uint32 (&low)[4], const uint32 (&high)[4],
                           const uint4 (&few)[kFewTiles]) {
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) {
      const uint32 a[4] = {low[0], high[0], low[1], high[1]}, b[2] = {few[j].x, few[j].y};
      multiply_add(T(), sums[tile][j], a, b);
    }
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) {
      const uint32 a[4] = {low[2], high[2], low[3], high[3]}, b[2] = {few[j].z, few[j].w};
      multiply_add(T(), sums[tile][j], a, b);
    }
  }

  // Four pairs of packet p: its depths of unit u.
  template <bool kAligned, bool kOffset, class D>
  __device__ void pairs_along(D d, const Args& args, const Place& place, const Words& packet, int p,
                              int u, uint32 (&pairs)[4], const Scales& scales) {
    if constexpr (kRaw) {
#pragma unroll
      for (int w = 0; w < kUnitWords; ++w) {
        const uint32 word = packet.words[u * kUnitWords + w];
        uint32 some[kPairs];
        if constexpr (kOffset)
          to_offset_pairs(d, T(), word, some);
        else
          to_pairs(d, T(), word, some);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) pairs[w * kPairs + j] = some[j];
        if constexpr (kMarksOdd) odd[p] |= odd_bytes(word);
      }
      if constexpr (kScalesPairs) {
        const Index depth = place.depth + (kScaleBlock % kOwn == 0 ? 0 : u * kUnit);
        scale_pairs(pairs, scales.pair(depth, 8 * p + threadIdx.x % 32 / 4));
      }
    } else {
      R numbers[kUnit];
      numbers_of<kAligned>(args, place, packet, p, u * kUnit, numbers);
#pragma unroll
      for (int j = 0; j < 4; ++j) pairs[j] = narrow_pair(T(), numbers[2 * j], numbers[2 * j + 1]);
    }
  }
  template <bool kAligned, bool kOffset>
  __device__ void add_along(const Args& args, const Place& place, const Words (&packets)[kPackets],
                            int u, const uint4 (&few)[kFewTiles], const Scales& scales) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      uint32 low[4], high[4];
      pairs_along<kAligned, kOffset>(W(), args, place, packets[2 * tile], 2 * tile, u, low,
                                     scales);
      pairs_along<kAligned, kOffset>(W(), args, place, packets[2 * tile + 1], 2 * tile + 1, u,
                                     high, scales);
      multiply(tile, low, high, few);
    }
  }

  // pairs[i][j]: depths 2 i and 2 i + 1 of row j of word w of the packets.
  template <class D>
  __device__ void pairs_across(D d, const Words (&packets)[kPackets], int w,
                               uint32 (&pairs)[4][2 * kPairs]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32 first = packets[2 * i].words[w], second = packets[2 * i + 1].words[w];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32 some[kPairs];
        const uint32 order = kNeighbours ? (half == 0 ? 0x5140 : 0x7362)  // bytes in turn
                                         : (half == 0 ? 0x5410 : 0x7632);
        to_pairs(d, T(), __byte_perm(first, second, order), some);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) pairs[i][half * kPairs + j] = some[j];
      }
      if constexpr (kMarksOdd) odd[w] |= odd_bytes(first) | odd_bytes(second);
    }
  }
  template <bool kAligned>
  __device__ void add_across(const Args& args, const Place& place,
                             const Words (&packets)[kPackets], const uint4 (&few)[kFewTiles],
                             const Scales& scales) {
    constexpr int kRowsOfPart = kRaw ? 2 * kPairs : 2;  // that are converted at a time
#pragma unroll
    for (int part = 0; part < kElements / kRowsOfPart; ++part) {
      uint32 pairs[4][kRowsOfPart];
      if constexpr (kRaw) {
        pairs_across(W(), packets, part, pairs);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          R even[2], uneven[2];
          numbers_of<kAligned>(args, place, packets[2 * i], 2 * i, 2 * part, even);
          numbers_of<kAligned>(args, place, packets[2 * i + 1], 2 * i + 1, 2 * part, uneven);
          pairs[i][0] = narrow_pair(T(), even[0], uneven[0]);
          pairs[i][1] = narrow_pair(T(), even[1], uneven[1]);
        }
      }
#pragma unroll
      for (int j = 0; j < kRowsOfPart; j += 2) {
        uint32 low[4] = {pairs[0][j], pairs[1][j], pairs[2][j], pairs[3][j]};
        uint32 high[4] = {pairs[0][j + 1], pairs[1][j + 1], pairs[2][j + 1], pairs[3][j + 1]};
        if constexpr (kScaled) {
          const int row = kElements * (threadIdx.x % 32 / 4) + part * kRowsOfPart + j;
          scale_pairs(low, scales.pair(place.depth, row));
          scale_pairs(high, scales.pair(place.depth, row + 1));
        }
        multiply((part * kRowsOfPart + j) / 2, low, high, few);
      }
    }
  }

  __device__ void spread_odd() {
#pragma unroll
    for (int p = 0; p < (kAlong ? kPackets : kWords); ++p) {
      odd[p] |= __shfl_xor_sync(0xffffffffu, odd[p], 1);
      odd[p] |= __shfl_xor_sync(0xffffffffu, odd[p], 2);
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 2 * i + half;  // of a packet across the depth
        const bool is_odd =
            kAlong ? odd[2 * i + half] != 0 : (odd[row / 4 % kWords] >> row % 4 * 8 & 0x80u) != 0;
#pragma unroll
        for (int j = 0; j < kFewTiles; ++j)
#pragma unroll
          for (int v = 0; v < 2; ++v)
            if (is_odd) sums[i][j][2 * half + v] = quiet_nan();
      }
  }
};
