// Dequantising producers: operands of 8 or 4 bits, contiguous along K. cp.async copies the packed
// values some K-blocks ahead; the producer threads convert them to 16-bit floats two at a time
// (half2), subtract the zero point and multiply by the scale of their block, and store to the
// stage. Requires a tile scheduler, sm90/prologue_pieces.cuh and the generated header, which
// defines kRawSteps (K-blocks of packed values in flight per warpgroup) and for operand A (and
// likewise B)
//   NarrowA::kConverts       the following exist where it is true
//     Stored, kBits          type and width of the packed values
//     Scale, kBlock          type of scales, k values per scale; kBlock 0: no scales
//     kExactScales           scales are exact in the stage's type
//     Zero, kZeroBits        zero points; kZeroBits 0: none
//     kExactZeros            value minus zero point is exact in the stage's type
//     numbers(args, batch, row, depth), scales(...)   addresses
//     zero_bit(...)          address of a zero point in bits
//
// A packet is 16 bytes of a row. A thread converts the packets that it copied itself, so no barrier
// is needed. The 8 lanes of a store phase hit different banks: with 4 packets per line they cover
// two lines, with 2 packets four, and swizzles of adjacent lines differ in the low bits.
#include "lib/ptx_cp_async.cuh"
#include "lib/narrow_to_half2.cuh"

// Iterates over the K-blocks of a producer warpgroup through all of its work tiles.
struct Walk {
  WorkTile work;
  int number, block;

  __device__ Walk(const Args& args, int group)
      : work(work_of(args, first_work())), number(first_work()), block(work.first + group) {
    settle(args);
  }
  __device__ bool more(const Args& args) const { return number < work_count(args); }
  __device__ void next(const Args& args) {
    block += kProducers;
    settle(args);
  }
  // Past the end of a work tile: carries the remainder into the next one.
  __device__ void settle(const Args& args) {
    while (more(args) && block >= work.first + work.count) {
      block -= work.first + work.count;
      number += work_step();
      if (more(args)) work = work_of(args, number);
      block += work.first;
    }
  }
};

// Values of a word as half2 pairs of neighbours, in order.
template <class Stored, class Math>
__device__ inline void neighbours(Stored s, Math m, uint32 word, uint32 (&pairs)[2]) {
  to_pairs(s, m, PairsOfNeighbours<Stored>::value ? word : __byte_perm(word, 0, 0x3120), pairs);
}
template <class Stored, class Math>
__device__ inline void neighbours(Stored s, Math m, uint32 word, uint32 (&pairs)[4]) {
  uint32 apart[4];  // pair j holds values j and j + 4
  to_pairs(s, m, word, apart);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    pairs[2 * half] = __byte_perm(apart[0], apart[1], half == 0 ? 0x5410 : 0x7632);
    pairs[2 * half + 1] = __byte_perm(apart[2], apart[3], half == 0 ? 0x5410 : 0x7632);
  }
}

// Bytes that to_pairs does not convert: marks them by bit 7, and fixes their pairs.
template <class Stored, class Math> struct NonfiniteBytes {
  static const bool kThere = false;
};
template <class Math> struct NonfiniteBytes<e4m3, Math> {
  static const bool kThere = HasNonfiniteBytes<e4m3>::value;
  __device__ static uint32 marks(uint32 word) { return nonfinite_bytes(word); }
  __device__ static uint32 fix_pair(uint32 pair, uint32 mark, uint32) {
    return pair | mark * 0x7fffu;
  }
};
template <> struct NonfiniteBytes<e5m2, bf16> {
  static const bool kThere = true;
  __device__ static uint32 marks(uint32 word) {
    return ((word & 0x7c7c7c7cu) + 0x04040404u) & 0x80808080u;
  }
  // Infinity, or NaN where one of the two lowest bits is set.
  __device__ static uint32 fix_pair(uint32 pair, uint32 mark, uint32 bytes) {
    const uint32 nan = (bytes | bytes >> 1) & 0x10001u, mask = mark * 0xffffu;
    return (pair & (~mask | kMinus)) | (mask & (0x7f807f80u | nan << 6));
  }
};

__device__ constexpr int at_least_one(int n) { return n < 1 ? 1 : n; }

template <class Narrow, class Math, int kRows>
struct Converter {
  typedef typename Narrow::Stored Stored;
  typedef typename Narrow::Scale Scale;
  static const int kElements = 128 / Narrow::kBits;   // per packet
  static const int kAcross = kBlockK / kElements;  // packets per line
  static const int kLines = 128 / kAcross;            // covered by the threads at a time
  static const int kPackets = (kRows + kLines - 1) / kLines;
  static const bool kScaled = Narrow::kBlock > 0;
  static const int kScales = kScaled ? at_least_one(kElements / at_least_one(Narrow::kBlock)) : 0;
  static const bool kShifted = Narrow::kZeroBits > 0;
  static const int kZeros = kShifted ? kScales : 0;
  static const int kPairs = 16 / Narrow::kBits;  // per 32-bit word
  static const int kStepBytes = kPackets * 128 * (16 + 4 * (kScales + kZeros));
  static const int kBytes = kRawSteps * kStepBytes;  // per warpgroup

  uint8* steps;  // kRawSteps times: packets, scales, zero points of all threads
  int step;
  Walk ahead;

  __device__ Converter(const Args& args, uint8* memory, int group)
      : steps(memory + group * kBytes), step(0), ahead(args, group) {
    for (int i = 0; i + 1 < kRawSteps; ++i) copy(args, i);
  }

  __device__ static int line() { return (int)threadIdx.x % 128 / kAcross; }
  __device__ static int depth_of(int block) {
    return block * kBlockK + (int)threadIdx.x % kAcross * kElements;
  }
  __device__ static int row_of(const Args& args, const WorkTile& work, int packet) {
    const int row = Narrow::first_row(work) + line() + packet * kLines;
    return min(row, Narrow::row_end(args) - 1);
  }
  __device__ uint4* packet_at(int of_step, int packet) const {
    return (uint4*)(steps + of_step * kStepBytes) + packet * 128 + threadIdx.x % 128;
  }
  __device__ uint32* scale_at(int of_step, int scale) const {
    return (uint32*)(steps + of_step * kStepBytes + kPackets * 128 * 16) + scale * 128 +
           threadIdx.x % 128;
  }
  __device__ uint32* zero_at(int of_step, int zero) const {
    return scale_at(of_step, kPackets * kScales + zero);
  }
  // Address of scale s of a packet; clamped to the first one past the end of K.
  __device__ static const uint8* scale_of(const Args& args, int batch, int row, int depth, int s) {
    const int at = depth < (int)args.depth ? depth + s * Narrow::kBlock : 0;
    return Narrow::scales(args, batch, row, at);
  }
  __device__ static uint64 zero_of(const Args& args, int batch, int row, int depth, int s) {
    const int at = depth < (int)args.depth ? depth + s * Narrow::kBlock : 0;
    return Narrow::zero_bit(args, batch, row, at);
  }

  // Copies everything that the next K-block needs, as one cp.async group.
  __device__ void copy(const Args& args, int to) {
    if (ahead.more(args)) {
      const int depth = depth_of(ahead.block), batch = ahead.work.batch;
      const bool inside = depth < (int)args.depth;
#pragma unroll
      for (int i = 0; i < kPackets; ++i) {
        const int row = row_of(args, ahead.work, i);
        const uint8* numbers = Narrow::numbers(args, batch, row, inside ? depth : 0);
        cp_async_zfill<16>(packet_at(to, i), numbers, inside ? 16 : 0);
        if constexpr (kScaled) {
#pragma unroll
          for (int s = 0; s < kScales; ++s) {
            const uint8* from = scale_of(args, batch, row, depth, s);
            cp_async<4>(scale_at(to, i * kScales + s), from - ((uint64)from & 3));
            if constexpr (kShifted)
              cp_async<4>(zero_at(to, i * kScales + s),
                            (const uint8*)(zero_of(args, batch, row, depth, s) / 32 * 4));
          }
        }
      }
      ahead.next(args);
    }
    cp_async_commit_group();
  }

  // (pair - zero) * scale, rounded once.
  __device__ static uint32 scaled(uint32 pair, float zero, float scale, uint32 scale_pair) {
    if constexpr (kShifted && Narrow::kExactZeros)
      pair = fma_pair(Math(), pair, power_pair<Math>(0), both(narrow(Math(), -zero)));
    if constexpr (Narrow::kExactScales && Narrow::kExactZeros) {
      return fma_pair(Math(), pair, scale_pair, kMinus);
    } else {
      float first = widen(Math(), (uint16)pair), second = widen(Math(), (uint16)(pair >> 16));
      if constexpr (!Narrow::kExactZeros) {
        first -= zero;
        second -= zero;
      }
      return narrow_pair(Math(), first * scale, second * scale);
    }
  }

  __device__ static void convert_words(const uint4& packet, uint32 (&pairs)[4 * kPairs]) {
    const uint32 words[4] = {packet.x, packet.y, packet.z, packet.w};
    uint32 odd = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      uint32 some[kPairs];
      neighbours(Stored(), Math(), words[w], some);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) pairs[w * kPairs + j] = some[j];
      if constexpr (NonfiniteBytes<Stored, Math>::kThere)
        odd |= NonfiniteBytes<Stored, Math>::marks(words[w]);
    }
    if constexpr (NonfiniteBytes<Stored, Math>::kThere) {
      if (odd == 0) return;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const uint32 bytes = __byte_perm(words[w], 0, 0x3120);
        const uint32 marks = NonfiniteBytes<Stored, Math>::marks(bytes);
#pragma unroll
        for (int j = 0; j < 2; ++j)
          pairs[2 * w + j] = NonfiniteBytes<Stored, Math>::fix_pair(
              pairs[2 * w + j], marks >> (7 + 8 * j) & 0x10001u, bytes >> 8 * j & 0xff00ffu);
      }
    }
  }

  // Converts the packets of a K-block to the lines of a stage. `ready` waits for the stage.
  template <class Ready>
  __device__ void convert(const Args& args, const WorkTile& work, int block, uint8* to,
                          Ready ready) {
    copy(args, (step + kRawSteps - 1) % kRawSteps);
    ready();
    cp_async_wait_group<kRawSteps - 1>();
    const int depth = depth_of(block);
#pragma unroll 2
    for (int i = 0; i < kPackets; ++i) {
      if (kRows % kLines != 0 && line() + i * kLines >= kRows) break;
      uint32 pairs[4 * kPairs];
      convert_words(*packet_at(step, i), pairs);
      if constexpr (kScaled) {
        const int row = row_of(args, work, i), kEach = 4 * kPairs / kScales;
#pragma unroll
        for (int s = 0; s < kScales; ++s) {
          const int shift = (int)((uint64)scale_of(args, work.batch, row, depth, s) & 3) * 8;
          const float scale =
              depth < (int)args.depth ? scale_in(*scale_at(step, i * kScales + s) >> shift) : 0.f;
          const uint32 both_scales = both(narrow(Math(), scale));
          float zero = 0.f;
          if constexpr (kShifted) {
            const int bit = (int)(zero_of(args, work.batch, row, depth, s) % 32);
            if (depth < (int)args.depth) zero = zero_in(*zero_at(step, i * kScales + s) >> bit);
          }
#pragma unroll
          for (int j = 0; j < kEach; ++j)
            pairs[s * kEach + j] = scaled(pairs[s * kEach + j], zero, scale, both_scales);
        }
      }
#pragma unroll
      for (int p = 0; p < kElements / 8; ++p)
        *piece_at(to, line() + i * kLines, threadIdx.x % kAcross * (kElements / 8) + p) =
            make_uint4(pairs[4 * p], pairs[4 * p + 1], pairs[4 * p + 2], pairs[4 * p + 3]);
    }
    step = (step + 1) % kRawSteps;
  }

  // The scale in the low bits of a word.
  __device__ static float scale_in(uint32 word) {
    if constexpr (sizeof(typename Scale::Word) == 4)
      return __uint_as_float(word);
    else
      return (float)widen(Scale(), (typename Scale::Word)word);
  }
  // The zero point in the low bits of a word.
  __device__ static float zero_in(uint32 word) {
    typedef typename Narrow::Zero Zero;
    if constexpr (Narrow::kZeroBits == 32)
      return __uint_as_float(word);
    else
      return widen(Zero(), (typename Zero::Word)(word & ((1u << Narrow::kZeroBits) - 1)));
  }
};

// For an operand that is not dequantised.
struct NoConverter {
  static const int kBytes = 0;
  __device__ NoConverter(const Args&, uint8*, int) {}
  template <class Ready>
  __device__ void convert(const Args&, const WorkTile&, int, uint8*, Ready) {}
};
template <bool kConverts, class Narrow, class Math, int kRows> struct ConverterOf {
  typedef Converter<Narrow, Math, kRows> Type;
};
template <class Narrow, class Math, int kRows> struct ConverterOf<false, Narrow, Math, kRows> {
  typedef NoConverter Type;
};
