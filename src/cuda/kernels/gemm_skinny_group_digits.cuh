// Products with few rows by warpgroups (gemm_skinny_group.cuh): a chunk's products of 4-bit weights
// and the digits of x (gemm_skinny_digits.cuh), as integers of 8 bits, exactly.
//
// A word of 8 weights becomes two words of 4, each 16 times the weight: the upper halves of its
// bytes as they stand, and the lower ones moved up. Sums of a step are below 2^22 for each digit.
// While the products of a piece run, the next is converted, and the sums of the one before become
// floats.
#pragma once

static const int kOwnSums = WGMMA_N / 2;  // of a piece, 4 of each digit of 8 rows of x
// In one turn of a loop. kOwnPlaces: pieces whose sums are there at a time, one where registers are
// few; it is then other warpgroups whose products run meanwhile.
static const int kMostPieces = kOwnPlaces == 1 ? 4 : 8;
static const int kTurnPieces = kAllPieces <= kMostPieces ? kAllPieces : kMostPieces;
static const int kUsedSums = 4 * kFewTiles;  // of a lane: nobody looks at 8 rows that x has not
static_assert(kDigits == 3 && kUsedSums <= kHalf);

// Powers of two of rows 2 t and 2 t + 1 of each 8 of x, the same for all pieces of a step.
struct StepFactors {
  float of_x[kImageTiles][2];

  __device__ void load(const GroupLane& lane, int number) {
    const int block = (lane.step + number * kWarpsK) * kImageTiles;
    const uint8* const from =
        lane.stage + kFirstX + kFirstPower + block * kPowerBytes + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kImageTiles; ++j) {
      const uint2 both = *(const uint2*)(from + j * kPowerBytes);
      of_x[j][0] = __uint_as_float(both.x);
      of_x[j][1] = __uint_as_float(both.y);
    }
  }
};

__device__ inline void bytes_of_packets(const Words (&low_high)[2], uint32 (&factors)[kSlices][4]) {
  constexpr uint32 kUpper = 0xf0f0f0f0u;
#pragma unroll
  for (int w = 0; w < kSlices; ++w)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32 word = low_high[half].words[w];
      factors[w][half] = word << 4 & kUpper;
      factors[w][2 + half] = word & kUpper;
    }
}
__device__ inline void multiply_piece(int (&own)[kOwnSums], const uint32 (&factors)[kSlices][4],
                                      uint64 x) {
  fence_products();
#pragma unroll
  for (int c = 0; c < kSlices; ++c)
    multiply(own, factors[c], advance_descriptor(x, c * kSliceBytes), c > 0);
  commit_products();
}
// The two higher digits as one integer, below 2^30.
__device__ inline void add_digits(float (&sums)[kHalf], int (&own)[kOwnSums],
                                  const StepFactors& factors, const float (&scales)[2]) {
  keep_in_registers(own);
#pragma unroll
  for (int v = 0; v < kUsedSums; ++v) {
    const int* const digits = own + v / 4 * (4 * kDigits) + v % 4;
    const float high = (float)(digits[0] * 256 + digits[4]), low = (float)digits[8];
    const float sum = fmaf(high, 256.f, low) * factors.of_x[v / 4][v % 2];
    sums[v] = fmaf(sum, scales[v / 2 % 2], sums[v]);
  }
}

// The products of a chunk. Nothing runs from one turn of the loop to the next: the compiler could
// not tell which registers are in use, and would wait for every product.
__device__ inline void add_stage(const GroupLane& lane, GroupSums& all) {
  constexpr int kOfStep = kImageTiles * kBlockBytes;
  const uint64 x =
      matrix_descriptor<32>(lane.stage + kFirstX + lane.step * kOfStep, 0, kPlaneBytes);
  uint32 bytes[2][kSlices][4];
  int own[kOwnPlaces][kOwnSums];
  float scales[kOwnPlaces][2];
  StepFactors factors[kOwnPlaces];
  Words packets[2];
  lane.packets(0, 0, packets);
  bytes_of_packets(packets, bytes[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kTurnPieces) {
#pragma unroll
    for (int n = 0; n < kTurnPieces; ++n) {
      const int tile = n % kTiles, number = (first + n) / kTiles;  // of the warpgroup's steps
      const bool has_next = n + 1 < kTurnPieces || first + kTurnPieces < kAllPieces;
      if (has_next) lane.packets((first + n + 1) / kTiles, (n + 1) % kTiles, packets);
      const auto load_factors = [&] {
        const typename S::Word* const of_rows = lane.scales(number, tile);
        scales[n % kOwnPlaces][0] = (float)widen(S(), of_rows[0]);
        scales[n % kOwnPlaces][1] = (float)widen(S(), of_rows[8]);
        if (tile == 0 || kOwnPlaces == 1) factors[n / kTiles % kOwnPlaces].load(lane, number);
      };
      if constexpr (kOwnPlaces == 2) load_factors();
      multiply_piece(own[n % kOwnPlaces], bytes[n % 2],
                     advance_descriptor(x, number * (kWarpsK * kOfStep)));
      if constexpr (kOwnPlaces == 2) {
        wait_for_products<1>();  // of the piece before
        if (n > 0)
          add_digits(all.sums[(n - 1) % kTiles], own[(n - 1) % 2], factors[(n - 1) / kTiles % 2],
                     scales[(n - 1) % 2]);
      }
      if (has_next) bytes_of_packets(packets, bytes[1 - n % 2]);
      if constexpr (kOwnPlaces == 1) load_factors();  // as late as possible: registers
      if (kOwnPlaces == 1 || n + 1 == kTurnPieces) {
        wait_for_products<0>();
        add_digits(all.sums[tile], own[n % kOwnPlaces], factors[n / kTiles % kOwnPlaces],
                   scales[n % kOwnPlaces]);
      }
    }
  }
}

// Digits do not say what is not finite: their sums are NaN.
__device__ inline bool finish_sums(GroupSums& all) {
  bool is_lost = false;
  all.visit([&](int, int, float sum) { is_lost |= sum != sum; });
  return !is_lost;
}
