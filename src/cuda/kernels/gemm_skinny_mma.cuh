// Skinny GEMM: a step on tensor cores (mma.sync). Weights are operand A (16 rows), straight from
// registers; x is operand B (8 columns).
#include "lib/ptx_mma.cuh"
#include "lib/narrow_to_half2.cuh"

static const int kRowTiles = kKMajor ? kTiles : kElements / 2;
static const int kTilesM = (kM + 7) / 8;
// Packed pairs per word of weights: elements j and j + kPairs, or (kNeighbours) adjacent elements.
static const int kPairs = kRaw ? 16 / kBits : 1;
static const bool kNeighbours = kRaw && PairsOfNeighbours<W>::value;
static const int kUnitWords = kBits / 4;  // of a K-major packet
static const bool kScalesPairs = kScaled && !kByRows;  // else the accumulators of a step are scaled
static const bool kHasOffset = kKeepsOffset && kRaw && kKMajor && HasOffset<W>::value;
static const bool kMarksNan = kRaw && HasNonfiniteBytes<W>::value;

// Permutes a unit of x, 8 consecutive elements, into the K order of the weights' pairs.
__device__ inline uint4 permute_like_weights(uint4 unit) {
  if constexpr (kKMajor && kPairs == 2 && !kNeighbours)
    return make_uint4(__byte_perm(unit.x, unit.y, 0x5410), __byte_perm(unit.x, unit.y, 0x7632),
                      __byte_perm(unit.z, unit.w, 0x5410), __byte_perm(unit.z, unit.w, 0x7632));
  if constexpr (kKMajor && kPairs == 4)
    return make_uint4(__byte_perm(unit.x, unit.z, 0x5410), __byte_perm(unit.x, unit.z, 0x7632),
                      __byte_perm(unit.y, unit.w, 0x5410), __byte_perm(unit.y, unit.w, 0x7632));
  return unit;
}
static const bool kReorders = kKMajor && kPairs > 1 && !kNeighbours;

__device__ inline uint4 pack_unit(const R (&elements)[kUnit]) {
  return permute_like_weights(make_uint4(
      narrow_pair(T(), elements[0], elements[1]), narrow_pair(T(), elements[2], elements[3]),
      narrow_pair(T(), elements[4], elements[5]), narrow_pair(T(), elements[6], elements[7])));
}

// Products of x with the offset that the encoding adds to all weights; the same for all rows.
struct OffsetAccumulators {
  float acc[kTilesM][4];
  __device__ OffsetAccumulators() {
#pragma unroll
    for (int j = 0; j < kTilesM; ++j) fill(0.f, acc[j]);
  }
  __device__ void add(const uint4 (&x_frags)[kTilesM]) {
    const uint32 offset = offset_pair<T>(W()), a[4] = {offset, offset, offset, offset};
#pragma unroll
    for (int j = 0; j < kTilesM; ++j) {
      const uint32 first[2] = {x_frags[j].x, x_frags[j].y},
                   second[2] = {x_frags[j].z, x_frags[j].w};
      multiply_add(T(), acc[j], a, first);
      multiply_add(T(), acc[j], a, second);
    }
  }
  // `before`, or NaN if an accumulator is not finite, in which case the offset cannot be
  // subtracted.
  __device__ float nan_if_nonfinite(float before) const {
#pragma unroll
    for (int j = 0; j < kTilesM; ++j) before = fmaf(acc[j][0] + acc[j][1], 0.f, before);
    return before;
  }
};

struct Accumulators {
  // Row tile i holds rows 16 i + g and 16 i + 8 + g of the warp (K-major), or kElements g + 2 i and
  // the next row (N-major).
  float acc[kRowTiles][kTilesM][4];
  uint32 odd[kKMajor ? kPackets : kWords];  // bytes that encode NaN, which make their row NaN

  __device__ Accumulators() {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kTilesM; ++j) fill(0.f, acc[i][j]);
    fill(0u, odd);
  }

  // x(u, m): unit u of the lane's part of K of row m, in the K order of the weights.
  template <bool kAligned, class X>
  __device__ void add(const Args& args, const Coord& coord, const Words (&packets)[kPackets],
                      const X& x, const Scales& scales) {
    OffsetAccumulators none;
    add<kAligned, false>(args, coord, packets, x, scales, none);
  }
  // kOffset: weights keep the offset of their encoding; `offset` accumulates its products with x.
  template <bool kAligned, bool kOffset, class X>
  __device__ void add(const Args& args, const Coord& coord, const Words (&packets)[kPackets],
                      const X& x, const Scales& scales, OffsetAccumulators& offset) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      uint4 x_frags[kTilesM];
#pragma unroll
      for (int j = 0; j < kTilesM; ++j) {
        const int m = kM % 8 == 0 ? 8 * j + g : min(8 * j + g, kM - 1);
        x_frags[j] = x(u, m);
      }
      if constexpr (kOffset) offset.add(x_frags);
      if constexpr (kKMajor)
        add_k_major<kAligned, kOffset>(args, coord, packets, u, x_frags, scales);
      else
        add_n_major<kAligned>(args, coord, packets, x_frags, scales);
    }
  }

  // Adds (step - offset) * scale(packet, row of the warp): the accumulators of one step.
  template <class Scale>
  __device__ void add_scaled(const Accumulators& step, const OffsetAccumulators& offset,
                             const Scale& scale) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = scale(2 * i + half, 16 * i + 8 * half + g);
#pragma unroll
        for (int j = 0; j < kTilesM; ++j)
#pragma unroll
          for (int v = 2 * half; v < 2 * half + 2; ++v)
            acc[i][j][v] =
                fmaf(step.acc[i][j][v] - offset.acc[j][v % 2], factor, acc[i][j][v]);
      }
    if constexpr (kMarksNan) {
#pragma unroll
      for (int p = 0; p < kPackets; ++p) odd[p] |= step.odd[p];
    }
  }

  // Must be called once before visit().
  __device__ void finish() {
    if constexpr (kMarksNan) spread_nan();
  }
  // Calls use(row of the warp, row of x, accumulator) for each accumulator.
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kTilesM; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const int m = 8 * j + 2 * t + v % 2, half = v / 2;
          const int row = kKMajor ? 16 * i + 8 * half + g : kElements * g + 2 * i + half;
          if (m < kM) use(row, m, acc[i][j][v]);
        }
  }

 private:
  __device__ static void scale_pairs(uint32 (&pairs)[4], uint32 scale) {
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j] = fma_pair(T(), pairs[j], scale, kMinus);
  }
  __device__ void multiply(int tile, const uint32 (&low)[4], const uint32 (&high)[4],
                           const uint4 (&x_frags)[kTilesM]) {
#pragma unroll
    for (int j = 0; j < kTilesM; ++j) {
      const uint32 a[4] = {low[0], high[0], low[1], high[1]}, b[2] = {x_frags[j].x, x_frags[j].y};
      multiply_add(T(), acc[tile][j], a, b);
    }
#pragma unroll
    for (int j = 0; j < kTilesM; ++j) {
      const uint32 a[4] = {low[2], high[2], low[3], high[3]}, b[2] = {x_frags[j].z, x_frags[j].w};
      multiply_add(T(), acc[tile][j], a, b);
    }
  }

  // The four pairs of unit u of packet p.
  template <bool kAligned, bool kOffset, class D>
  __device__ void pairs_k_major(D d, const Args& args, const Coord& coord, const Words& packet,
                                int p, int u, uint32 (&pairs)[4], const Scales& scales) {
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
        if constexpr (kMarksNan) odd[p] |= nonfinite_bytes(word);
      }
      if constexpr (kScalesPairs) {
        const Index k = coord.k + (kScaleBlock % kOwn == 0 ? 0 : u * kUnit);
        scale_pairs(pairs, scales.pair(k, 8 * p + threadIdx.x % 32 / 4));
      }
    } else {
      R elements[kUnit];
      elements_of<kAligned>(args, coord, packet, p, u * kUnit, elements);
#pragma unroll
      for (int j = 0; j < 4; ++j) pairs[j] = narrow_pair(T(), elements[2 * j], elements[2 * j + 1]);
    }
  }
  template <bool kAligned, bool kOffset>
  __device__ void add_k_major(const Args& args, const Coord& coord,
                              const Words (&packets)[kPackets], int u,
                              const uint4 (&x_frags)[kTilesM], const Scales& scales) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      uint32 low[4], high[4];
      pairs_k_major<kAligned, kOffset>(W(), args, coord, packets[2 * tile], 2 * tile, u, low,
                                     scales);
      pairs_k_major<kAligned, kOffset>(W(), args, coord, packets[2 * tile + 1], 2 * tile + 1, u,
                                     high, scales);
      multiply(tile, low, high, x_frags);
    }
  }

  // pairs[i][j]: k = 2 i and 2 i + 1 of row j of word w of the packets.
  template <class D>
  __device__ void pairs_n_major(D d, const Words (&packets)[kPackets], int w,
                               uint32 (&pairs)[4][2 * kPairs]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32 first = packets[2 * i].words[w], second = packets[2 * i + 1].words[w];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32 some[kPairs];
        const uint32 order = kNeighbours ? (half == 0 ? 0x5140 : 0x7362)  // bytes interleaved
                                         : (half == 0 ? 0x5410 : 0x7632);
        to_pairs(d, T(), __byte_perm(first, second, order), some);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) pairs[i][half * kPairs + j] = some[j];
      }
      if constexpr (kMarksNan) odd[w] |= nonfinite_bytes(first) | nonfinite_bytes(second);
    }
  }
  template <bool kAligned>
  __device__ void add_n_major(const Args& args, const Coord& coord,
                             const Words (&packets)[kPackets], const uint4 (&x_frags)[kTilesM],
                             const Scales& scales) {
    constexpr int kRowsOfPart = kRaw ? 2 * kPairs : 2;  // converted at a time
#pragma unroll
    for (int part = 0; part < kElements / kRowsOfPart; ++part) {
      uint32 pairs[4][kRowsOfPart];
      if constexpr (kRaw) {
        pairs_n_major(W(), packets, part, pairs);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          R even[2], uneven[2];
          elements_of<kAligned>(args, coord, packets[2 * i], 2 * i, 2 * part, even);
          elements_of<kAligned>(args, coord, packets[2 * i + 1], 2 * i + 1, 2 * part, uneven);
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
          scale_pairs(low, scales.pair(coord.k, row));
          scale_pairs(high, scales.pair(coord.k, row + 1));
        }
        multiply((part * kRowsOfPart + j) / 2, low, high, x_frags);
      }
    }
  }

  __device__ void spread_nan() {
#pragma unroll
    for (int p = 0; p < (kKMajor ? kPackets : kWords); ++p) {
      odd[p] |= __shfl_xor_sync(0xffffffffu, odd[p], 1);
      odd[p] |= __shfl_xor_sync(0xffffffffu, odd[p], 2);
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 2 * i + half;  // of an N-major packet
        const bool is_odd =
            kKMajor ? odd[2 * i + half] != 0 : (odd[row / 4 % kWords] >> row % 4 * 8 & 0x80u) != 0;
#pragma unroll
        for (int j = 0; j < kTilesM; ++j)
#pragma unroll
          for (int v = 0; v < 2; ++v)
            if (is_odd) acc[i][j][2 * half + v] = quiet_nan();
      }
  }
};
